"""A run that is evaluated while somebody looks, on held-out samples that stay in memory."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from lorpman.explorer.opened_run import OpenedRun, Tell, say_nothing
from lorpman.explorer.samples import Prediction, ShownSamples, choose_samples, first_samples
from lorpman.front.choice import Choice
from lorpman.front.evaluate import evaluate, scores_of
from lorpman.front.front import Front
from lorpman.front.select import select
from lorpman.lab.datasets.splits import Batch, first_batches
from lorpman.preference import grid
from lorpman.task import Task, batch_length, per_task, unpack

# A drag along the slider and back asks for the same points again.
_KEPT_POINTS = 512
# A search scores about 40 networks while a person waits.
_SEARCH_SAMPLES = 2000
# Seconds by which the line that the point moves on may delay the page.
_LONGEST_START = 10.0


@dataclass(frozen=True)
class ScoredPoint:
    """A preference, its scores on the held-out samples, and what it says about those shown."""

    alpha: tuple[float, ...]
    """The preference, one weight per task."""
    scores: tuple[float, ...]
    """One per task."""
    predictions: list[list[Prediction]]
    """For every card, what the network says about the tasks that it lists."""


class LiveRun:
    """A run whose networks can be had at any preference (or at its members').

    Args:
        run: A run with weights and data.
        num_samples: On how many test samples a point is scored at most.
        tell: Told what is being done, before it is done.
    """

    def __init__(self, run: OpenedRun, num_samples: int, tell: Tell = say_nothing) -> None:
        assert run.model is not None
        assert run.splits is not None
        self.run, self.model, self.tasks = run, run.model, run.tasks
        tell(f"{run.key}: reading up to {num_samples:,} samples to score on")
        self.held = held_samples(run.splits.test, self.tasks, num_samples)
        """Test samples, on which points are scored."""
        self.searched = held_samples(run.splits.validation, self.tasks, _SEARCH_SAMPLES)
        """Validation samples, on which a preference is searched for."""
        networks = 1 + len(self.tasks)
        tell(f"{run.key}: choosing samples to show, by what {networks} networks say about them")
        self.samples: ShownSamples = choose_samples(self.model, self.tasks, self.held[0], run.show)
        # For this object and not for the class, so that the cache goes when the run does.
        self.point = lru_cache(maxsize=_KEPT_POINTS)(self._score_point)
        """A preference, as a tuple of weights, to its :class:`ScoredPoint`."""
        tell(f"{run.key}: scoring a first network")
        self.even = self.point(round_preference(grid(len(self.tasks), 1)[0]))
        """The point with equal weights, against which others are compared."""
        self.front = self._score_front() if self._front_is_quick() else None
        """The stored preferences on the held samples; None where the page does not need it."""

    @property
    def all_samples(self) -> int:
        """The size of the test split."""
        return len(self.run.splits.test)  # type: ignore[union-attr]

    @property
    def whole(self) -> bool:
        """Whether the held samples are the whole test split."""
        return self.held_samples == self.all_samples

    @property
    def held_samples(self) -> int:
        """On how many test samples a point is scored."""
        return sum(map(batch_length, self.held))

    @property
    def held_text(self) -> str:
        """How many samples a point is scored on, in words."""
        each = " of every task" if isinstance(self.held[0][0], list) else ""
        return f"{self.held_samples:,} {self.run.data_words}{each}"

    @property
    def searched_samples(self) -> int:
        """On how many validation samples a preference is searched for."""
        return sum(map(batch_length, self.searched))

    def find(self, demand: Mapping[str, Any]) -> Choice:
        """The preference that answers a demand best on validation data.

        Args:
            demand: Keyword arguments of :func:`lorpman.front.select.select`.
        """
        return select(self.model, self.tasks, self.searched, **demand).choice

    @torch.no_grad()
    def _score_point(self, alpha: tuple[float, ...]) -> ScoredPoint:
        weights = torch.tensor(alpha)
        network = self.model.solution(weights).eval()
        ((scores, _),) = scores_of([network], self.tasks, self.held, weights[None])
        return ScoredPoint(alpha, tuple(scores.tolist()), self.samples.predict(network))

    def _front_is_quick(self) -> bool:
        """Whether a line for the point to move on is worth its time at the start."""
        # On the whole split, the point moves on the stored front itself.
        if len(self.tasks) != 2 or self.run.mode != "any" or self.whole:
            return False
        started = time.perf_counter()
        self.point(round_preference(self.run.front.alphas[0]))
        return (time.perf_counter() - started) * len(self.run.front) < _LONGEST_START

    def _score_front(self) -> Front:
        """The stored front's preferences on the held-out samples, on which the point moves."""
        return evaluate(self.model, self.tasks, self.held, self.run.front.alphas)


def held_samples(data: Any, tasks: Sequence[Task], count: int) -> list[Batch]:
    """The beginning of a split, in memory, with a list of one target per task.

    Args:
        data: The split.
        tasks: The tasks.
        count: How many samples, if there are so many.
    """
    read = (unpack(batch) for batch in first_batches(data, count))
    return _at_most([(x, per_task(y, tasks, "the batch's targets")) for x, y in read], count)


def _at_most(batches: list[Batch], count: int) -> list[Batch]:
    """The first ``count`` samples of ``batches``, or all, if there are fewer."""
    kept: list[Batch] = []
    for batch in batches:
        if count <= 0:
            break
        kept.append(first_samples(batch, count))
        count -= batch_length(batch)
    return kept


def round_preference(alpha: Tensor) -> tuple[float, ...]:
    """``alpha [m]`` to four digits, as an address holds it, with the sum 1 again.

    Args:
        alpha: The preference.

    >>> round_preference(torch.tensor([1 / 3, 2 / 3]))
    (0.3333, 0.6667)
    """
    parts = [round(weight, 4) for weight in alpha.double().tolist()]
    # What rounding lost goes to the largest weight, where it matters least.
    largest = parts.index(max(parts))
    parts[largest] = round(parts[largest] + 1 - sum(parts), 4)
    return tuple(parts)
