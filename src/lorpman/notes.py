"""What a run notes while it trains: one line of JSON per epoch."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from lorpman.errors import UsageError
from lorpman.files import write_bytes
from lorpman.fit import Epoch
from lorpman.manifold.base import Manifold
from lorpman.problems.base import Problem


def read_notes(run: Path) -> list[dict[str, Any]]:
    """What a run noted after every epoch; number 0 is the start, where that was noted."""
    try:
        lines = (run / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise UsageError(f"the notes of run {run} cannot be read: {error}") from None


def peak_memory() -> int:
    """The most bytes that this process has held: on the GPU if it used one, else resident.

    It counts everything since the process began, so it says something about a run only if the
    process did nothing else.
    """
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.max_memory_allocated()
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


class Notes:
    """The run's ``metrics.jsonl``: one line per epoch."""

    def __init__(self, path: Path, problem: Problem, model: Manifold, epochs_done: int) -> None:
        self._path, self._problem, self._model = path, problem, model
        if epochs_done:
            # An epoch noted but not saved before an interruption is done, and noted, again.
            kept = [note for note in self.read() if note["number"] <= epochs_done]
            write_bytes(path, "".join(json.dumps(note) + "\n" for note in kept).encode())
        else:
            write_bytes(path, b"")
            if trace := self._trace():
                self._write({"number": 0, **trace})

    def add(self, epoch: Epoch) -> None:
        self._write({**asdict(epoch), "peak_memory": peak_memory(), **self._trace()})

    def _trace(self) -> dict[str, Any]:
        """What problem and manifold want to be noted."""
        own = {} if self._problem.trace is None else self._problem.trace(self._model)
        return {**self._model.trace(), **own}

    def read(self) -> list[dict[str, Any]]:
        return read_notes(self._path.parent)

    def seconds(self) -> float:
        return float(sum(note.get("seconds", 0.0) for note in self.read()))

    def _write(self, note: Mapping[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(note) + "\n")
