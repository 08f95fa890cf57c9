"""The row about any problem, a person's own too: what a front costs, in plain trainings of it."""

import statistics
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from lorpman.lab.bench.benchmark_row import BenchmarkRow, Measurement
from lorpman.lab.bench.memory_row import peak_of_tensors
from lorpman.lab.bench.steps import fit_step, plain_steps
from lorpman.lab.bench.timing import Conditions, interleave, ratio
from lorpman.lab.bench.workload import Workload
from lorpman.lab.datasets.process_shares import shared_batches
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
    order = torch.Generator().manual_seed(0)
    loader = shared_batches(splits.train, spec.training.batch_size, order)
    workload = ProblemWorkload(
        spec,
        partial(problem.make_network, spec.data),
        torch.empty(0),
        [],
        spec.tasks(),
        problem.shared,
        batch=next(iter(loader)),
    )
    return _measure_steps(workload, len(loader), conditions)


def _measure_steps(workload: Workload, steps: int, conditions: Conditions) -> Measurement:
    """Time and memory of a step beside plain ones, and what follows for a whole training."""
    window, epochs = workload.spec.training.window, workload.spec.training.epochs
    ours, plain = fit_step(workload), plain_steps(workload, window, tuned=True)
    times = interleave({"plain": plain, "lorpman": ours}, conditions)
    value = ratio(times, "lorpman", "plain")
    seconds = statistics.median(times["lorpman"]) * steps * epochs
    trained = sum(p.nbytes for p in ours.run.model.parameters() if p.requires_grad)
    network = sum(p.nbytes for p in workload.network().parameters())
    # Gradients come and go within a step, and are no working memory.
    working = peak_of_tensors(ours) - trained
    plainly = peak_of_tensors(plain_steps(workload, 1, tuned=True)) - network
    return Measurement(
        value,
        times,
        {"working memory of a step, against one plain step": working / plainly},
        f"one front costs as much as {window * value:.1f} trainings of your network, for a window "
        f"of {window} preferences: about {_duration(seconds)} here, for {epochs} epochs of "
        f"{steps} steps; scoring the front comes on top",
    )


def _duration(seconds: float) -> str:
    """A time in words.

    >>> _duration(42), _duration(600), _duration(9000)
    ('42 seconds', '10 minutes', '2.5 hours')
    """
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
