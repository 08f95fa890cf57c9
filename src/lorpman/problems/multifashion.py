"""MultiFashion: MultiMNIST made from Fashion-MNIST."""

from lorpman.data import multimnist
from lorpman.nets.lenet import lenet
from lorpman.problems.base import Problem
from lorpman.problems.multimnist import tasks

PROBLEM = Problem(
    name="multifashion",
    summary="two overlapping pieces of clothing (Fashion-MNIST), LeNet, 2 tasks",
    tasks=lambda settings: tasks(),
    network=lambda settings: lenet(),
    load=lambda root, settings: multimnist.load(root, "fashion"),
)
