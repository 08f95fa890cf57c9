"""The registry of problems: their names, and where each one is defined."""

from importlib import import_module

from lorpman.errors import unknown
from lorpman.lab.problems.problem import Problem

PROBLEMS = {
    "toy": "toy:PROBLEM",
    "vlmop2": "known_fronts:VLMOP2",
    "zdt1": "known_fronts:ZDT1",
    "zdt2": "known_fronts:ZDT2",
    "quadratic": "known_fronts:QUADRATIC",
    "ellipses": "known_fronts:ELLIPSES",
    "multidigits": "multidigits:PROBLEM",
    "multimnist": "multimnist:PROBLEM",
    "multifashion": "multifashion:PROBLEM",
    "census": "census:PROBLEM",
    "utkface": "utkface:PROBLEM",
    "cifar100": "cifar100:PROBLEM",
    "celeba": "celeba:PROBLEM",
    "cityscapes": "cityscapes:PROBLEM",
}
"""For every name, the file of this folder and the variable in it that holds the problem.

Not the problems themselves: importing all their networks and datasets to list a few names would
be slow.
"""


def get_problem(name: str) -> Problem:
    """Look a problem up, and import its file.

    Args:
        name: a key of :data:`PROBLEMS`.

    Returns:
        The problem of that name.

    Raises:
        UsageError: there is no such problem; the message suggests the nearest name.
    """
    if name not in PROBLEMS:
        raise unknown("problem", name, PROBLEMS)
    file, _, variable = PROBLEMS[name].partition(":")
    problem: Problem = getattr(import_module(f"lorpman.lab.problems.{file}"), variable)
    return problem
