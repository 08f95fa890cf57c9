"""A run's ``metrics.jsonl``: one line per epoch, each of them once, however often it is resumed."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lorpman._files import Kind, near_start, parse_json, write_bytes
from lorpman.errors import UsageError
from lorpman.lab.problems.problem import Problem
from lorpman.lab.runs.peak_memory import peak_memory
from lorpman.lab.runs.run_file import first_fault
from lorpman.manifold.base import Manifold
from lorpman.training.fit import Epoch

if TYPE_CHECKING:
    from lightning_fabric import Fabric

KIND = Kind("an epoch log", near_start(b'"number": ', within=16))


def read_epoch_log(run: Path) -> list[dict[str, Any]]:
    """The lines of a finished run, one per epoch.

    Args:
        run: The run directory.

    Returns:
        The fields of :class:`~lorpman.training.fit.Epoch`, ``peak_memory``, and what problem and
        manifold trace. Number 0 is the start, where there was something to trace.

    Raises:
        UsageError: If there is no log, or a line of it is damaged.
    """
    try:
        lines = (run / "metrics.jsonl").read_text().splitlines()
        return [_read_line(line) for line in lines]
    except (OSError, ValueError) as error:
        raise UsageError(f"the notes of run {run} cannot be read: {error}") from None


class _EpochLine(BaseModel):
    """One line: what an epoch did, and whatever problem and manifold trace."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    number: int = Field(ge=0)
    losses: dict[str, float] = {}
    hypervolume: float | None = None
    learning_rate: float = 0.0
    frozen: bool = False
    seconds: float = Field(0.0, ge=0)
    peak_memory: int = Field(0, ge=0)
    parameters: int = Field(0, ge=0)


def _read_line(text: str) -> dict[str, Any]:
    """What a line says.

    Raises:
        UsageError: If it is no line of an epoch.
    """
    line = parse_json(text)
    try:
        _EpochLine.model_validate(line)
    except ValidationError as error:
        raise UsageError(f"no line of an epoch: {first_fault(error)}") from None
    return line


def parameters_learned(described: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> int:
    """How many numbers a run has learned; where that changes while training, in the end.

    Args:
        described: What the run's ``run.json`` says.
        lines: Its epoch log.
    """
    last = lines[-1] if lines else {}
    return int(last.get("parameters", described.get("parameters", 0)))


class EpochLog:
    """Writes ``metrics.jsonl`` while a run trains, and tells the loggers of Fabric.

    A run that was ended may have logged epochs that it did not save. They are done again, so their
    lines are dropped when the first epoch of the resumed run is added.

    Args:
        path: The file; begun if it is not there.
        problem: May have a trace of its own.
        model: The manifold that is trained, which may have one too.
        fabric: Has the loggers; None for none.
    """

    def __init__(
        self, path: Path, problem: Problem, model: Manifold, fabric: "Fabric | None" = None
    ) -> None:
        self._path, self._problem, self._model = path, problem, model
        self._fabric = fabric
        self._continued = False
        if not path.exists():
            # A line of number 0: what there is to trace before the first step.
            trace = self._trace()
            start = json.dumps({"number": 0, **trace}) + "\n" if trace else ""
            write_bytes(path, start.encode(), KIND)

    def add(self, epoch: Epoch) -> None:
        """Write the line of one epoch.

        Args:
            epoch: What :func:`~lorpman.training.fit.fit` tells after it.

        Raises:
            UsageError: If the disk is full.
        """
        if not self._continued:
            # Epochs after the checkpoint that this process went on from are trained again: their
            # old lines go.
            kept = [line for line in self.read() if line["number"] < epoch.number]
            write_bytes(
                self._path, "".join(json.dumps(line) + "\n" for line in kept).encode(), KIND
            )
            self._continued = True
            self._restart_loggers(kept)
        self._append({**asdict(epoch), "peak_memory": peak_memory(), **self._trace()})
        self._tell_loggers(asdict(epoch))

    def read(self) -> list[dict[str, Any]]:
        """Every whole line; a kill can leave half of one at the end."""
        try:
            lines = self._path.read_text(errors="replace").splitlines()
        except OSError:
            return []
        return [line for line in map(_parse_line, lines) if line is not None]

    def seconds(self) -> float:
        """The seconds spent on all epochs together, those before an interruption included."""
        return float(sum(line.get("seconds", 0.0) for line in self.read()))

    def _trace(self) -> dict[str, Any]:
        """What manifold and problem want to be logged."""
        of_problem = {} if self._problem.trace is None else self._problem.trace(self._model)
        return {**self._model.trace(), **of_problem}

    def _tell_loggers(self, line: Mapping[str, Any]) -> None:
        """Tell the loggers, which hold plain numbers only, of an epoch; the start has none."""
        if self._fabric is not None and self._fabric.loggers and "losses" in line:
            values = {f"loss/{task}": value for task, value in line["losses"].items()}
            values |= {"learning_rate": line["learning_rate"], "seconds": line["seconds"]}
            if line["hypervolume"] is not None:
                values["hypervolume"] = line["hypervolume"]
            self._fabric.log_dict(values, step=line["number"])
            for logger in self._fabric.loggers:
                logger.save()

    def _restart_loggers(self, kept: list[dict[str, Any]]) -> None:
        """Begin their files again: they may hold epochs that are done once more."""
        for logger in [] if self._fabric is None else self._fabric.loggers:
            # Their formats can only be appended to, so all is written again.
            shutil.rmtree(str(logger.log_dir), ignore_errors=True)
        for line in kept:
            self._tell_loggers(line)

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")
                file.flush()
                # Before the checkpoint of its epoch, so that no saved epoch lacks its line.
                os.fsync(file.fileno())
        except OSError as error:
            raise UsageError(
                f"cannot write '{self._path}': {error.strerror or error}; make room and resume"
            ) from None


def _parse_line(text: str) -> dict[str, Any] | None:
    """What a line says, if it is whole."""
    try:
        return _read_line(text)
    except UsageError:
        return None
