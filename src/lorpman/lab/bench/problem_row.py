"""The row about any problem, a person's own too: LORPMAN's step against b plain ones."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from lorpman.lab.bench.benchmark_row import BenchmarkRow, Measurement
from lorpman.lab.bench.step_rows import step_row
from lorpman.lab.bench.timing import Conditions
from lorpman.lab.bench.workload import Workload
from lorpman.lab.datasets.splits import batches
from lorpman.lab.problems.problem import Problem
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.trial import try_out

# The largest of our own step rows.
_TARGET = 1.40


@dataclass(frozen=True)
class ProblemWorkload(Workload):
    """A problem's network and tasks, and a mini-batch of its own data, of any structure."""

    batch: Any = None
    """The mini-batch, as the problem's loader gives it."""

    def plain_batch(self) -> Any:
        """The mini-batch as the loader gives it."""
        return self.batch

    def fit_batch(self) -> Any:
        """The same: how a person's data lies in memory is theirs."""
        return self.batch


def problem_row(problem: Problem) -> BenchmarkRow:
    """The row that measures a step on a problem.

    Args:
        problem: Any problem.

    Returns:
        A row, which loads the data and tries the problem out when it is measured.
    """
    what = f"LORPMAN step on {problem.name}, at its settings, against b plain ones"
    return BenchmarkRow(f"{problem.name}-step", what, _TARGET, partial(_measure, problem))


def _measure(problem: Problem, conditions: Conditions) -> Measurement:
    spec = Spec.make(problem, "lorpman", 0, {})
    splits = spec.load(conditions.data)
    try_out(spec, splits, conditions.data)
    batch = next(iter(batches(splits.train, spec.training.batch_size)))
    workload = ProblemWorkload(
        spec,
        partial(problem.make_network, spec.data),
        torch.empty(0),
        [],
        spec.tasks(),
        problem.shared,
        batch=batch,
    )
    return step_row(workload, conditions, f"b = {spec.training.window}")
