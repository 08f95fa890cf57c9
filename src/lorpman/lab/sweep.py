"""What a search tries: values for some settings of a problem and a method."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lorpman.errors import UsageError, check_kind, shown
from lorpman.lab.problems.own_problem import as_people_write
from lorpman.lab.problems.problem import Problem
from lorpman.lab.runs.spec import Scale, Spec
from lorpman.lab.settings import format_assignments

Ranges = Mapping[str, Sequence[Any]]
"""For some settings, the values to try."""
# What Optuna can keep as a choice.
_PLAIN_TYPES = (int, float, str, type(None))


@dataclass(frozen=True)
class Sweep:
    """What is searched: one problem and method, and values to try for some settings.

    Args:
        problem: The problem.
        method: The name of the method.
        seed: Of every trial.
        overrides: Settings that all trials share.
        ranges: The values to try.
        scale: ``laptop`` for the preset's stated reduction.
        recipe: The name of a recipe, if there is one.
    """

    problem: Problem
    method: str
    seed: int
    overrides: Mapping[str, Any]
    ranges: Ranges
    scale: Scale = "paper"
    recipe: str | None = None

    @classmethod
    def make(
        cls,
        problem: str | Problem,
        method: str,
        seed: int,
        overrides: Mapping[str, Any],
        ranges: Ranges,
        scale: Scale = "paper",
        recipe: str | None = None,
    ) -> "Sweep":
        """Choose and check what is searched.

        Args:
            problem: What :func:`~lorpman.lab.problems.own_problem.find_problem` takes.
            method: The name of the method.
            seed: Of every trial.
            overrides: Settings that all trials share; they are not searched.
            ranges: These take the place of the preset's.
            scale: ``laptop`` for the preset's stated reduction.
            recipe: The name of a recipe, if there is one.

        Returns:
            The sweep.

        Raises:
            UsageError: If there is nothing to search, or a value is not one that a run can have.
        """
        spec = Spec.make(problem, method, seed, overrides, scale, recipe)
        _check_ranges(ranges)
        problem = spec.problem
        known = spec.settings()
        preset = {k: v for k, v in spec.problem.preset().search.items() if k in known}
        chosen = {k: list(v) for k, v in {**preset, **ranges}.items() if k not in overrides}
        if not chosen:
            raise UsageError(
                f"{problem.name} has no ranges for {method}; give some with "
                "--search key=value,value"
            )
        sweep = cls(problem, method, seed, overrides, chosen, scale, recipe)
        sweep._check_values()
        return sweep

    def _check_values(self) -> None:
        for key, values in self.ranges.items():
            for value in values:
                self.spec({key: value})  # a value that no run can have fails now, not at night
                if not isinstance(value, _PLAIN_TYPES):
                    raise UsageError(f"--search {key}: a list cannot be searched, found {value}")
            if len(set(values)) < len(values):
                raise UsageError(f"--search {key}: expected different values, found {values}")

    def spec(self, chosen: Mapping[str, Any]) -> Spec:
        """The run of one trial, with the values chosen for it.

        Args:
            chosen: A value for each setting that is searched.
        """
        overrides = {**self.overrides, **_whole_numbers(chosen)}
        return Spec.make(self.problem, self.method, self.seed, overrides, self.scale, self.recipe)

    def command(self, chosen: Mapping[str, Any]) -> str:
        """How to train with these settings, for a shell.

        Args:
            chosen: A value for each setting that is searched.
        """
        words = [
            "lorpman",
            "train",
            as_people_write(self.problem),
            "--method",
            self.method,
            "--seed",
            self.seed,
        ]
        if self.scale != "paper":
            words += ["--scale", self.scale]
        if self.recipe is not None:
            words += ["--recipe", self.recipe]
        for assignment in format_assignments({**self.overrides, **_whole_numbers(chosen)}):
            words += ["--set", assignment]
        return shlex.join(map(str, words))

    def combinations(self) -> int:
        """How many different trials there can be."""
        return math.prod(len(values) for values in self.ranges.values())

    def name(self) -> str:
        """Of the study: the same words for the same search, so that workers meet in one."""
        fixed = ",".join(f"{k}={v}" for k, v in sorted(self.overrides.items()))
        ranges = ",".join(f"{k}={v}" for k, v in sorted(self.ranges.items()))
        start = (self.problem.name, self.method, str(self.seed), self.scale, self.recipe)
        # Scores of a problem file that has changed since are those of another problem.
        source = (self.problem.source or "")[:12]
        parts = (*start, fixed, ranges, source)
        return "/".join(part for part in parts if part)


def _check_ranges(ranges: Ranges) -> None:
    """Refuse what is no list of values by setting."""
    check_kind("search", ranges, Mapping, "a dict of the values to try, by setting")
    for key, values in ranges.items():
        # A text is a sequence too, of letters that nobody means.
        if isinstance(values, str | bytes) or not isinstance(values, Sequence) or not values:
            raise UsageError(f"search of {shown(key)} must be a list, got {shown(values)}")


def _whole_numbers(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Whole numbers as such: the ranges of a preset are floats where one of them is."""
    return {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in chosen.items()}
