"""MultiMNIST: two overlapping handwritten digits, as PaMaL and LORPMAN use it."""

from torch.nn import functional as F

from lorpman.data import multimnist
from lorpman.nets.lenet import lenet
from lorpman.problems.base import Problem
from lorpman.scores import accuracy
from lorpman.task import Task


def tasks() -> list[Task]:
    """The upper left and the lower right picture."""
    return [Task(name, F.cross_entropy, accuracy) for name in ("left", "right")]


PROBLEM = Problem(
    name="multimnist",
    summary="two overlapping handwritten digits (MNIST), LeNet, 2 tasks",
    tasks=lambda settings: tasks(),
    network=lambda settings: lenet(),
    load=lambda root, settings: multimnist.load(root, "mnist"),
)
