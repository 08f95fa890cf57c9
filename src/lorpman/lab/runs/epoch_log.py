"""A run's ``metrics.jsonl``: one line per epoch, right after any interruption."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lorpman._files import write_bytes
from lorpman.errors import UsageError, need, unknown
from lorpman.lab.problems.problem import Problem
from lorpman.manifold.base import Manifold
from lorpman.training.fit import Epoch

if TYPE_CHECKING:
    from lightning_fabric import Fabric

LOGGERS = ("csv", "tensorboard")


def make_loggers(names: Sequence[str], out: Path) -> list[Any]:
    """Fabric's loggers by name, each in a folder of its own below ``out``."""
    made: list[Any] = []
    for name in names:
        if name not in LOGGERS:
            raise unknown("logger", name, LOGGERS)
        if name == "tensorboard":
            need("tensorboard", extra="watch")
        from lightning_fabric.loggers.csv_logs import CSVLogger
        from lightning_fabric.loggers.tensorboard import TensorBoardLogger

        kind: Any = CSVLogger if name == "csv" else TensorBoardLogger
        made.append(kind(out, name=name, version=""))
    return made


def read_notes(run: Path) -> list[dict[str, Any]]:
    """What a run noted after every epoch; number 0 is the start, where that was noted."""
    try:
        lines = (run / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise UsageError(f"the notes of run {run} cannot be read: {error}") from None


def parameters_learned(described: Mapping[str, Any], notes: Sequence[Mapping[str, Any]]) -> int:
    """Of a run; where that changes while training, as it was when the last note was taken."""
    last = notes[-1] if notes else {}
    return int(last.get("parameters", described.get("parameters", 0)))


def _note(line: str) -> dict[str, Any] | None:
    """The note on a line, if it is one."""
    try:
        note = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(note, dict) and type(note.get("number")) is int
    return note if whole and isinstance(note.get("seconds", 0.0), int | float) else None


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
    """What every epoch did, and the problem's own trace of it."""

    def __init__(
        self, path: Path, problem: Problem, model: Manifold, fabric: "Fabric | None" = None
    ) -> None:
        self._path, self._problem, self._model = path, problem, model
        self._fabric = fabric
        self._continued = False
        if not path.exists():
            trace = self._trace()
            start = json.dumps({"number": 0, **trace}) + "\n" if trace else ""
            write_bytes(path, start.encode())

    def add(self, epoch: Epoch) -> None:
        """Note one epoch; those from it on, noted but not saved before an end, are redone."""
        if not self._continued:
            kept = [note for note in self.read() if note["number"] < epoch.number]
            write_bytes(self._path, "".join(json.dumps(note) + "\n" for note in kept).encode())
            self._continued = True
            self._log_again(kept)
        self._write({**asdict(epoch), "peak_memory": peak_memory(), **self._trace()})
        self._log(asdict(epoch))

    def _trace(self) -> dict[str, Any]:
        """What problem and manifold want to be noted."""
        own = {} if self._problem.trace is None else self._problem.trace(self._model)
        return {**self._model.trace(), **own}

    def _log(self, note: Mapping[str, Any]) -> None:
        """Tell the loggers, which hold plain numbers."""
        if self._fabric is not None and self._fabric.loggers and "losses" in note:
            values = {f"loss/{task}": value for task, value in note["losses"].items()}
            values |= {"learning_rate": note["learning_rate"], "seconds": note["seconds"]}
            if note["hypervolume"] is not None:
                values["hypervolume"] = note["hypervolume"]
            self._fabric.log_dict(values, step=note["number"])
            for logger in self._fabric.loggers:
                logger.save()

    def _log_again(self, kept: list[dict[str, Any]]) -> None:
        """Start their files over: they may hold epochs that are done again."""
        for logger in [] if self._fabric is None else self._fabric.loggers:
            shutil.rmtree(str(logger.log_dir), ignore_errors=True)
        for note in kept:
            self._log(note)

    def read(self) -> list[dict[str, Any]]:
        """Every line that is a note; a kill can leave half of one at the end."""
        try:
            lines = self._path.read_text(errors="replace").splitlines()
        except OSError:
            return []
        return [note for note in map(_note, lines) if note is not None]

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
