"""MultiFashion: MultiMNIST made from Fashion-MNIST."""

from lorpman.lab.datasets import overlaid_pairs
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.problems.multimnist import tasks
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem

PROBLEM = Problem(
    name="multifashion",
    summary="two overlapping pieces of clothing (Fashion-MNIST), LeNet, 2 tasks",
    settings=read_preset("multifashion"),
    tasks=tasks(),
    network=lenet,
    data=lambda root: overlaid_pairs.load(root, "fashion"),
)
