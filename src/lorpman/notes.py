"""A run's ``metrics.jsonl``: one line per epoch, right after any interruption."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lorpman.errors import UsageError
from lorpman.files import write_bytes
from lorpman.fit import Epoch
from lorpman.manifold.base import Manifold
from lorpman.problems.base import Problem


class Notes:
    """What every epoch did, and the problem's own trace of it."""

    def __init__(self, path: Path, problem: Problem, model: Manifold) -> None:
        self._path, self._problem, self._model = path, problem, model
        self._continued = False
        if not path.exists():
            start = {} if problem.trace is None else {"number": 0, **problem.trace(model)}
            write_bytes(path, (json.dumps(start) + "\n").encode() if start else b"")

    def add(self, epoch: Epoch) -> None:
        """Note one epoch; those from it on, noted but not saved before an end, are redone."""
        if not self._continued:
            kept = [note for note in self.read() if note["number"] < epoch.number]
            write_bytes(self._path, "".join(json.dumps(note) + "\n" for note in kept).encode())
            self._continued = True
        trace = {} if self._problem.trace is None else self._problem.trace(self._model)
        self._write({**asdict(epoch), **trace})

    def read(self) -> list[dict[str, Any]]:
        """Every whole line; a kill can leave half of one at the end."""
        lines = self._path.read_text().splitlines()
        try:
            return [json.loads(line) for line in lines]
        except ValueError:
            return [json.loads(line) for line in lines[:-1]]

    def seconds(self) -> float:
        return float(sum(note.get("seconds", 0.0) for note in self.read()))

    def _write(self, note: Mapping[str, Any]) -> None:
        try:
            with self._path.open("a") as file:
                file.write(json.dumps(note) + "\n")
                file.flush()
                # Before the checkpoint of its epoch, so that no saved epoch lacks its line.
                os.fsync(file.fileno())
        except OSError as error:
            raise UsageError(
                f"cannot write '{self._path}': {error.strerror or error}; make room and resume"
            ) from None
