"""The problem that needs no download: two overlapping digits, a small convolutional network."""

from torch import nn
from torch.nn import functional as F

from lorpman.lab.datasets import multidigits
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.metrics import accuracy
from lorpman.task import Task


def network() -> SharedBottom:
    """Two convolutions and a narrow layer, so that the tasks must compete for it."""
    bottom = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 3 * 3, 10),
        nn.ReLU(),
    )
    return SharedBottom(bottom, [nn.Linear(10, 10), nn.Linear(10, 10)])


PROBLEM = Problem(
    name="multidigits",
    summary="two overlapping handwritten digits (scikit-learn's), 2 tasks, no download",
    settings=read_preset("multidigits"),
    tasks=[
        Task("left", F.cross_entropy, accuracy),
        Task("right", F.cross_entropy, accuracy),
    ],
    network=network,
    data=multidigits.load,
)
