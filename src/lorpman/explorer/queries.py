"""What can be asked about opened runs: a point, a search, a file.

Nothing here remembers who asked; what comes from a browser is checked before it is used.
"""

import io
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from lorpman.explorer.bounded_worker import BoundedWorker
from lorpman.explorer.bounds import selection_arguments
from lorpman.explorer.live_run import LiveRun, round_preference
from lorpman.explorer.opened_run import OpenedRun
from lorpman.explorer.request_guard import RequestRefused
from lorpman.explorer.samples import Prediction
from lorpman.front.choice import Choice
from lorpman.front.export import export
from lorpman.front.front import Front
from lorpman.lab.datasets.splits import first_batches
from lorpman.lab.runs.export_run import export_from_run
from lorpman.preference import as_preference

FORMATS = {
    "safetensors": "weights for the network's own class",
    "onnx": "a graph for ONNX runtimes",
    "pt2": "a PyTorch program",
}
"""The files that a network can be exported to, by suffix, and what each one is."""
_POINTS_WAITING = 64
_SEARCHES_WAITING = 8


@dataclass(frozen=True)
class StoredScores:
    """The scores of a run that cannot be evaluated: those of the nearest stored point."""

    scores: Sequence[float]
    """One per task."""
    place: int
    """Where on the stored front that point stands."""


@dataclass(frozen=True)
class LiveScores:
    """Scores that were computed for this question."""

    scores: Sequence[float]
    """One per task."""
    predictions: list[list[Prediction]]
    """What the network says about the samples on the page, card by card."""
    milliseconds: float
    """What it took, waiting included."""


class Queries:
    """The opened runs, and threads that evaluate them. Shared by all windows, changed by none.

    Args:
        runs: The runs on the page.
        live_runs: Those of them that can be evaluated, by key.
    """

    def __init__(self, runs: Sequence[OpenedRun], live_runs: Mapping[str, LiveRun]) -> None:
        self.runs = {run.key: run for run in runs}
        self.live_runs = dict(live_runs)
        # Of their own: a moving point must not wait for a search.
        self._points = BoundedWorker(_POINTS_WAITING)
        self._searches = BoundedWorker(_SEARCHES_WAITING)

    def run_named(self, key: Any) -> OpenedRun:
        """The run that a request names.

        Args:
            key: What the browser sent, which may be anything.

        Raises:
            RequestRefused: If there is none of that key.
        """
        if not isinstance(key, str) or key not in self.runs:
            raise RequestRefused("unknown run")
        return self.runs[key]

    def read_alpha(self, run: OpenedRun, given: Any) -> tuple[float, ...]:
        """The preference that a request asks for.

        Args:
            run: The run that it is asked of.
            given: What the browser sent: numbers, one per task, with sum 1.

        Returns:
            The preference ``[m]``, rounded; of a run that has some only, the nearest of those.

        Raises:
            RequestRefused: If it is no preference.
        """
        m = len(run.front.tasks)
        # A bool is an int to isinstance, and a mistake here.
        numbers = isinstance(given, list) and all(type(w) in (int, float) for w in given)
        if not numbers or len(given) != m:
            raise RequestRefused(f"a preference is {m} numbers")
        try:
            alpha = as_preference([float(weight) for weight in given], m)
        except (ValueError, OverflowError) as error:
            raise RequestRefused(str(error)) from None
        if run.mode != "any":
            alpha = run.front.alphas[_nearest_place(run.front, alpha)]
        return round_preference(alpha)

    def scores_at(self, run: OpenedRun, alpha: tuple[float, ...]) -> StoredScores | LiveScores:
        """The scores of ``run`` at a preference.

        Args:
            run: One of those on the page.
            alpha: The preference, as :meth:`read_alpha` gave it.

        Raises:
            NotFinite: If the network there gives NaN or infinity.
            Busy: If too many wait for scores already.
        """
        started = time.perf_counter()
        live = self.live_runs.get(run.key)
        if live is None:
            place = _nearest_place(run.front, run.front.alphas.new_tensor(list(alpha)))
            return StoredScores(run.front.scores[place].tolist(), place)
        point = self._points.run(lambda: live.point(alpha))
        milliseconds = 1000 * (time.perf_counter() - started)
        return LiveScores(point.scores, point.predictions, milliseconds)

    def even_scores(self, run: OpenedRun) -> Sequence[float]:
        """The scores with equal weights, on the samples of :meth:`scores_at`.

        Args:
            run: One of those on the page.
        """
        live = self.live_runs.get(run.key)
        if live is not None:
            return live.even.scores
        even = run.front.alphas.new_full((len(run.front.tasks),), 1 / len(run.front.tasks))
        return run.front.scores[_nearest_place(run.front, even)].tolist()

    def find(self, run: OpenedRun, bounds: Mapping[str, float]) -> Choice:
        """The preference that keeps to ``bounds`` and does best on the other tasks.

        Args:
            run: One of those on the page.
            bounds: What tasks must reach, by name.

        Raises:
            UsageError: If the bounds cannot be searched for.
            Busy: If too many searches wait already.
        """
        demand = selection_arguments(run.front, bounds)
        live = self.live_runs.get(run.key)
        if live is None:
            return run.front.select(**demand)
        return self._searches.run(lambda: live.find(demand))

    def export(self, run: OpenedRun, alpha: tuple[float, ...], suffix: str) -> bytes:
        """A zip with the network at a preference as a file, and its card.

        Args:
            run: One of those on the page.
            alpha: The preference.
            suffix: The format, by the ending of its files without the dot.

        Raises:
            RequestRefused: If the format is unknown, or the run has no weights or data here.
            UsageError: If the network cannot be written in this format.
            Busy: If too many searches and exports wait already.
        """
        if suffix not in FORMATS:
            raise RequestRefused("unknown format")
        if run.model is None or run.splits is None:
            raise RequestRefused(f"nothing to export: {run.why_not_live}", 409)
        # With the searches: both take seconds, and must not hold up the moving point.
        return self._searches.run(lambda: _zipped_export(run, alpha, suffix))

    def close(self) -> None:
        """End the threads."""
        self._points.close()
        self._searches.close()


def _nearest_place(front: Front, alpha: Tensor) -> int:
    """The stored point whose preference is nearest to ``alpha [m]``."""
    return int((front.alphas - alpha).square().sum(1).argmin())


def _zipped_export(run: OpenedRun, alpha: tuple[float, ...], suffix: str) -> bytes:
    assert run.model is not None
    assert run.splits is not None
    weights = as_preference(list(alpha), len(alpha))
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / f"model.{suffix}"
        if run.spec is not None:
            written = export_from_run(run.spec, run.model, run.splits, weights, to).file
        else:
            example = first_batches(run.splits.test, 2)[0][0]
            names = [task.name for task in run.tasks]
            written = export(run.model, weights, to, example, outputs=names)
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(written.path, written.path.name)
            archive.write(written.card, written.card.name)
    return content.getvalue()
