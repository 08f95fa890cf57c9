"""The registry of problems. A row is imported when it is asked for."""

from importlib import import_module

from lorpman.errors import unknown
from lorpman.problems.base import Problem

PROBLEMS = (
    "toy",
    "vlmop2",
    "zdt1",
    "zdt2",
    "quadratic",
    "ellipses",
    "multidigits",
    "multimnist",
    "multifashion",
    "census",
    "utkface",
    "cifar100",
    "celeba",
    "cityscapes",
)


def get_problem(name: str) -> Problem:
    """The row called ``name``."""
    if name not in PROBLEMS:
        raise unknown("problem", name, PROBLEMS)
    problem: Problem = import_module(f"lorpman.problems.{name}").PROBLEM
    return problem
