"""MultiFashion and MultiFashion+MNIST: MultiMNIST with Fashion-MNIST for both or the right one."""

from lorpman.lab.datasets import overlaid_pairs
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.problems.multimnist import PairSettings, tasks
from lorpman.lab.problems.preset import read_preset
from lorpman.lab.problems.problem import Problem

PROBLEM = Problem(
    name="multifashion",
    summary="two overlapping pieces of clothing (Fashion-MNIST), LeNet, 2 tasks",
    settings=read_preset("multifashion"),
    tasks=tasks(),
    network=lenet,
    data=lambda root, options: overlaid_pairs.load(
        root, "fashion", fresh_pairs=options.fresh_pairs
    ),
    options=PairSettings,
)

WITH_DIGITS = Problem(
    name="multifashion-mnist",
    summary="a digit (MNIST) left, a piece of clothing (Fashion-MNIST) right, LeNet, 2 tasks",
    settings=read_preset("multifashion"),
    tasks=tasks(),
    network=lenet,
    data=lambda root, options: overlaid_pairs.load(
        root, "mnist+fashion", fresh_pairs=options.fresh_pairs
    ),
    options=PairSettings,
)
