"""The problems that need no download: two or three overlapping digits, a small network."""

from torch import nn
from torch.nn import functional as F

from lorpman.lab.datasets import multidigits
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.lab.settings import SettingsGroup
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.metrics import accuracy
from lorpman.task import Task


class DigitSettings(SettingsGroup):
    """How training pictures are put together."""

    fresh_pairs: bool = False
    """Draw the training pictures anew in every epoch, from the same digits, instead of once."""


def network(digits: int = 2) -> SharedBottom:
    """Two convolutions and a narrow layer, so that the tasks must compete for it.

    Args:
        digits: On each picture; one head for each.
    """
    side = 2 * digits - 1  # after the convolutions
    bottom = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * side * side, 10),
        nn.ReLU(),
    )
    return SharedBottom(bottom, [nn.Linear(10, 10) for _ in range(digits)])


PROBLEM = Problem(
    name="multidigits",
    summary="two overlapping handwritten digits (scikit-learn's), 2 tasks, no download",
    settings=read_preset("multidigits"),
    tasks=[Task(name, F.cross_entropy, accuracy) for name in ("left", "right")],
    network=network,
    data=lambda options: multidigits.load(fresh_pairs=options.fresh_pairs),
    options=DigitSettings,
)

THREE = Problem(
    name="threedigits",
    summary="three overlapping handwritten digits (scikit-learn's), 3 tasks, no download",
    settings=read_preset("multidigits"),
    tasks=[Task(name, F.cross_entropy, accuracy) for name in ("upper", "middle", "lower")],
    network=lambda: network(3),
    data=lambda options: multidigits.load(3, options.fresh_pairs),
    options=DigitSettings,
)
