"""Evaluating while somebody looks: held-out samples in memory, and threads that take turns."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

from lorpman.explorer.opened_run import Opened
from lorpman.explorer.samples import Prediction, Samples, choose
from lorpman.front.choice import Choice
from lorpman.front.evaluate import evaluate, scores_of
from lorpman.front.front import Front
from lorpman.front.select import select
from lorpman.lab.datasets.splits import Batch, first_batches

Result = TypeVar("Result")
_KEPT_POINTS = 512
_SEARCH_SAMPLES = 2000
_LONGEST_START = 10.0


class Busy(Exception):
    """More was asked for than can be answered in reasonable time."""


class Turns:
    """One thread for everything of a kind.

    A new thread per request would also mean a new set of torch's own threads per request; one
    that stays keeps memory steady, and computing twice at once would be no faster.
    """

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._room = threading.BoundedSemaphore(most)

    def run(self, work: Callable[[], Result]) -> Result:
        """The result of ``work``, when its turn has come."""
        if not self._room.acquire(blocking=False):
            raise Busy
        try:
            return self._pool.submit(work).result()
        finally:
            self._room.release()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Point:
    """A preference, its scores on the held-out samples, and what it says about those shown."""

    alpha: tuple[float, ...]
    scores: tuple[float, ...]
    predictions: list[list[Prediction]]


class Live:
    """A run whose networks can be had at any preference (or at its members')."""

    def __init__(self, run: Opened, samples: int) -> None:
        assert run.model is not None
        assert run.splits is not None
        self.run, self.model, self.tasks = run, run.model, run.spec.tasks()
        self.held = _first(first_batches(run.splits.test, samples), samples)
        self.searched = _first(
            first_batches(run.splits.validation, _SEARCH_SAMPLES), _SEARCH_SAMPLES
        )
        self.samples: Samples = choose(self.model, self.tasks, self.held[0])
        self.point = lru_cache(maxsize=_KEPT_POINTS)(self._point)
        self.front = self._front() if self._front_is_quick() else None

    @property
    def all_samples(self) -> int:
        return len(self.run.splits.test)  # type: ignore[union-attr,arg-type]

    @property
    def whole(self) -> bool:
        """Whether the held samples are the whole test split."""
        return self.held_samples == self.all_samples

    @property
    def held_samples(self) -> int:
        return sum(len(y[0]) for _, y in self.held)

    @property
    def held_text(self) -> str:
        """How many samples a point is scored on, in words."""
        each = " of every task" if isinstance(self.held[0][0], list) else ""
        return f"{self.held_samples:,} held-out test samples{each}"

    @property
    def searched_samples(self) -> int:
        return sum(len(y[0]) for _, y in self.searched)

    @torch.no_grad()
    def _point(self, alpha: tuple[float, ...]) -> Point:
        network = self.model.solution(torch.tensor(alpha)).eval()
        ((scores, _),) = scores_of([network], self.tasks, self.held)
        return Point(alpha, tuple(scores.tolist()), self.samples.predict(network))

    def _front_is_quick(self) -> bool:
        """Whether a line for the point to move on is worth its time at the start."""
        if len(self.tasks) != 2 or self.run.mode != "any" or self.whole:
            return False
        started = time.perf_counter()
        self.point(rounded(self.run.front.alphas[0]))
        return (time.perf_counter() - started) * len(self.run.front) < _LONGEST_START

    def _front(self) -> Front:
        """The stored front's preferences on the held-out samples, on which the point moves."""
        return evaluate(self.model, self.tasks, self.held, self.run.front.alphas)

    def find(self, demand: Mapping[str, Any]) -> Choice:
        """The preference that answers a demand best on validation data."""
        return select(self.model, self.tasks, self.searched, **demand).choice


def _first(batches: list[Batch], count: int) -> list[Batch]:
    """At most ``count`` samples of them."""
    kept: list[Batch] = []
    for x, y in batches:
        if count <= 0:
            break
        part = [one[:count] for one in x] if isinstance(x, list) else x[:count]
        kept.append((part, [target[:count] for target in y]))
        count -= len(y[0])
    return kept


def rounded(alpha: Tensor) -> tuple[float, ...]:
    """``alpha [m]`` to four digits, as an address holds it, with the sum 1 again.

    >>> rounded(torch.tensor([1 / 3, 2 / 3]))
    (0.3333, 0.6667)
    """
    parts = [round(weight, 4) for weight in alpha.double().tolist()]
    largest = parts.index(max(parts))
    parts[largest] = round(parts[largest] + 1 - sum(parts), 4)
    return tuple(parts)
