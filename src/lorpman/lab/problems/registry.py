"""The registry of problems: their names, and where each one is defined."""

from dataclasses import replace
from importlib import import_module

from lorpman.errors import unknown
from lorpman.lab.added_by_packages import added_names, load_added
from lorpman.lab.problems.problem import Problem

PROBLEMS = {
    "toy": "toy:PROBLEM",
    "vlmop2": "known_fronts:VLMOP2",
    "zdt1": "known_fronts:ZDT1",
    "zdt2": "known_fronts:ZDT2",
    "quadratic": "known_fronts:QUADRATIC",
    "ellipses": "known_fronts:ELLIPSES",
    "multidigits": "multidigits:PROBLEM",
    "threedigits": "multidigits:THREE",
    "multimnist": "multimnist:PROBLEM",
    "multifashion": "multifashion:PROBLEM",
    "multifashion-mnist": "multifashion:WITH_DIGITS",
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


def problem_names() -> list[str]:
    """Those of this folder, then those that other packages add."""
    return [*PROBLEMS, *(n for n in added_names("lorpman.problems") if n not in PROBLEMS)]


def get_problem(name: str) -> Problem:
    """Look a problem up by its name alone, and import its file.

    A name leads to this package or to another installed one, never to a file: see
    :mod:`lorpman.lab.problems.own_problem` for those.

    Args:
        name: One of :func:`problem_names`.

    Returns:
        The problem of that name.

    Raises:
        UsageError: If there is no such problem (the message suggests the nearest name), or the
            package that adds it cannot be imported.
    """
    if name in PROBLEMS:
        file, _, variable = PROBLEMS[name].partition(":")
        found = getattr(import_module(f"lorpman.lab.problems.{file}"), variable)
    elif name in added_names("lorpman.problems"):
        found = load_added("lorpman.problems", name, Problem)
    else:
        raise unknown("problem", name, problem_names())
    problem: Problem = replace(found, reference=name)
    return problem
