"""MultiMNIST: two overlapping handwritten digits, as PaMaL and LORPMAN use it."""

from torch.nn import functional as F

from lorpman.lab.datasets import overlaid_pairs
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem
from lorpman.lab.settings import SettingsGroup
from lorpman.metrics import accuracy
from lorpman.task import Task


class PairSettings(SettingsGroup):
    """How training pictures are put together."""

    fresh_pairs: bool = False
    """Pair the training images anew in every epoch, instead of once."""


def tasks() -> list[Task]:
    """The upper left and the lower right picture."""
    return [Task(name, F.cross_entropy, accuracy) for name in ("left", "right")]


PROBLEM = Problem(
    name="multimnist",
    summary="two overlapping handwritten digits (MNIST), LeNet, 2 tasks",
    settings=read_preset("multimnist"),
    tasks=tasks(),
    network=lenet,
    data=lambda root, options: overlaid_pairs.load(root, "mnist", fresh_pairs=options.fresh_pairs),
    options=PairSettings,
)
