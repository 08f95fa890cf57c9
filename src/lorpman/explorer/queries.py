"""What can be asked about opened runs: a point, a search, a file.

Nothing here remembers who asked; what comes from a browser is checked before it is used.
"""

import io
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lorpman.explorer.bounds import demand_of
from lorpman.explorer.live_evaluation import Live, Turns, rounded
from lorpman.explorer.opened_run import Opened
from lorpman.explorer.request_guard import Refused
from lorpman.front.choice import Choice
from lorpman.front.front import Front
from lorpman.lab.runs.export_run import export_from_run
from lorpman.preference import as_preference

FORMATS = {
    "safetensors": "weights for the network's own class",
    "onnx": "a graph for ONNX runtimes",
    "pt2": "a PyTorch program",
}
_POINTS_WAITING = 64
_SEARCHES_WAITING = 8


class Answers:
    """The opened runs, and threads that evaluate them. Shared by all windows, changed by none."""

    def __init__(self, runs: Sequence[Opened], lives: Mapping[str, Live]) -> None:
        self.runs = {run.key: run for run in runs}
        self.lives = dict(lives)
        self._quick, self._slow = Turns(_POINTS_WAITING), Turns(_SEARCHES_WAITING)

    def run(self, key: Any) -> Opened:
        if not isinstance(key, str) or key not in self.runs:
            raise Refused("unknown run")
        return self.runs[key]

    def alpha(self, run: Opened, given: Any) -> tuple[float, ...]:
        """A preference out of a request: numbers, one per task, with sum 1."""
        m = len(run.front.tasks)
        numbers = isinstance(given, list) and all(type(w) in (int, float) for w in given)
        if not numbers or len(given) != m:
            raise Refused(f"a preference is {m} numbers")
        try:
            alpha = as_preference([float(weight) for weight in given], m)
        except (ValueError, OverflowError) as error:
            raise Refused(str(error)) from None
        if run.mode != "any":
            nearest = (run.front.alphas - alpha).square().sum(1).argmin()
            alpha = run.front.alphas[nearest]
        return rounded(alpha)

    def point(self, run: Opened, alpha: tuple[float, ...]) -> dict[str, Any]:
        """The scores at a preference, and what the page needs to show them."""
        started = time.perf_counter()
        live = self.lives.get(run.key)
        if live is None:
            place = _nearest(run.front, alpha)
            scores = run.front.scores[place].tolist()
            return {"run": run.key, "alpha": alpha, "scores": scores, "place": place}
        point = self._quick.run(lambda: live.point(alpha))
        milliseconds = 1000 * (time.perf_counter() - started)
        return {
            "run": run.key,
            "alpha": alpha,
            "scores": point.scores,
            "predictions": point.predictions,
            "milliseconds": milliseconds,
        }

    def find(self, run: Opened, bounds: Mapping[str, float]) -> Choice:
        demand = demand_of(run.front, bounds)
        live = self.lives.get(run.key)
        if live is None:
            return run.front.select(**demand)
        return self._slow.run(lambda: live.find(demand))

    def export(self, run: Opened, alpha: tuple[float, ...], suffix: str) -> bytes:
        """A zip with the network's file and its card."""
        if suffix not in FORMATS:
            raise Refused("unknown format")
        if run.model is None or run.splits is None:
            raise Refused(f"nothing to export: {run.still}", 409)
        return self._slow.run(lambda: _zipped(run, alpha, suffix))

    def close(self) -> None:
        self._quick.close()
        self._slow.close()


def _nearest(front: Front, alpha: Sequence[float]) -> int:
    target = front.alphas.new_tensor(list(alpha))
    return int((front.alphas - target).square().sum(1).argmin())


def _zipped(run: Opened, alpha: tuple[float, ...], suffix: str) -> bytes:
    assert run.model is not None
    assert run.splits is not None
    weights = as_preference(list(alpha), len(alpha))
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / f"model.{suffix}"
        written = export_from_run(run.spec, run.model, run.splits, weights, to).file
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(written.path, written.path.name)
            archive.write(written.card, written.card.name)
    return content.getvalue()
