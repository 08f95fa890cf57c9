"""What the results keep of a run: its settings, its front and where it came from, as JSON.

A run directory holds weights, notes and pictures; a table needs a few numbers of it. A record is
those numbers, small enough to be kept in the repository long after the directory is gone.
"""

import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from lorpman._files import read_json
from lorpman.errors import UsageError
from lorpman.front.front import Front
from lorpman.lab.runs.epoch_log import parameters_learned, read_epoch_log
from lorpman.lab.runs.run_file import read_run_file

Note = Mapping[str, Any]
_DIGITS = 6
"""Of numbers that are only drawn."""


@dataclass(frozen=True, eq=False)
class RunRecord:
    """One finished run, as tables and pictures see it."""

    problem: str
    method: str
    seed: int
    """Of all that is drawn."""
    scale: str
    """``paper`` or ``laptop``."""
    recipe: str | None
    """What the settings started from; None for the preset alone."""
    settings: Mapping[str, Any]
    """All of them, as ``run.json`` has them."""
    parameters: int
    """How many are learned."""
    seconds: float
    """Of training, all epochs together."""
    front_json: Mapping[str, Any]
    """The test front, as ``front.json`` has it."""
    commit: str
    """Of the code that made the record; empty where the code is no git checkout."""
    versions: Mapping[str, str]
    """Of the packages that it was trained with, by name."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """The settings on top of the preset."""
    values: Mapping[str, float] = field(default_factory=dict)
    """What was measured, by the key of the table's column."""
    history: Sequence[Note] = ()
    """What the table's figure draws of every epoch, if it draws any of that."""

    @property
    def front(self) -> Front:
        """The test front."""
        stored = self.front_json
        losses = stored.get("losses")
        if losses is not None:
            # JSON has no infinite numbers, so a front that holds one has null instead.
            rows = [[math.nan if loss is None else loss for loss in row] for row in losses]
            losses = torch.tensor(rows, dtype=torch.float64)
        return Front(
            alphas=torch.tensor(stored["alphas"]),
            scores=torch.tensor(stored["scores"], dtype=torch.float64),
            tasks=tuple(stored["tasks"]),
            maximise=tuple(stored["maximise"]),
            reference=tuple(stored["reference"]),
            losses=losses,
            label=stored["label"],
        )

    @property
    def hypervolume(self) -> float:
        """As stored with the front: sampling it again takes seconds."""
        return float(self.front_json["hypervolume"]["value"])

    @property
    def hypervolume_error(self) -> float:
        """The standard error of the hypervolume; 0 where it is exact."""
        return float(self.front_json["hypervolume"]["stderr"])

    def to_json(self) -> dict[str, Any]:
        """The record as JSON holds it; empty parts are left out."""
        parts = {
            "problem": self.problem,
            "method": self.method,
            "seed": self.seed,
            "scale": self.scale,
            "recipe": self.recipe,
            "changes": self.changes,
            "settings": self.settings,
            "parameters": self.parameters,
            "seconds": self.seconds,
            "commit": self.commit,
            "versions": self.versions,
            "values": self.values,
            "front": self.front_json,
            "history": list(self.history),
        }
        return {key: part for key, part in parts.items() if part not in (None, {}, [], "")}

    @classmethod
    def from_json(cls, described: Mapping[str, Any]) -> "RunRecord":
        """Read what :meth:`to_json` gave.

        Args:
            described: The JSON.

        Returns:
            The record.

        Raises:
            UsageError: If a part is missing or has a name that no record has.
        """
        parts = dict(described)
        parts["front_json"] = parts.pop("front", None)
        try:
            # What to_json leaves out when it is empty and the class has no default for.
            return cls(**{"recipe": None, "commit": "", **parts})
        except TypeError as error:
            raise UsageError(f"this is not the record of a run: {error}") from None


def record_run(
    run: Path,
    changes: Mapping[str, Any] | None = None,
    values: Mapping[str, float] | None = None,
    history: str | None = None,
) -> RunRecord:
    """Make the record of a finished run directory.

    Args:
        run: The directory; its weights are not needed.
        changes: The settings on top of the preset.
        values: What was measured, by the key of a table's column.
        history: The part of every epoch's note that a figure draws.

    Returns:
        The record, with the commit of the present code.

    Raises:
        UsageError: If the directory is not that of a finished run.
    """
    described, notes = read_run_file(run), read_epoch_log(run)
    return RunRecord(
        problem=described.problem,
        method=described.method,
        seed=described.seed,
        scale=described.scale,
        recipe=described.recipe,
        settings=described.settings,
        parameters=parameters_learned(described.model_dump(), notes),
        seconds=round(sum(note.get("seconds", 0.0) for note in notes), 1),
        front_json=read_json(run / "front.json", "front"),
        commit=code_commit(),
        versions=described.versions,
        changes=changes or {},
        values=values or {},
        history=[
            {"number": note["number"], history: _rounded(note[history])}
            for note in notes
            if history in note
        ],
    )


def read_records(path: Path) -> list[RunRecord]:
    """All records in a JSON file of the results.

    Args:
        path: The file.

    Raises:
        UsageError: If the file cannot be read or is no such file.
    """
    described = read_json(path, "result")
    try:
        runs = [run for row in described["rows"] for run in row["runs"]]
    except (KeyError, TypeError):
        raise UsageError(f"{path} holds no records of runs") from None
    return [RunRecord.from_json(run) for run in runs]


def code_commit() -> str:
    """The last commit that changed this package; empty where it is not in a git checkout."""
    package = Path(__file__).parents[2]
    # Limited to the package: an installed copy may lie inside somebody else's checkout, which
    # then knows no commit of it.
    command = ["git", "-C", str(package), "log", "-1", "--format=%h", "--", "."]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def table_json(command: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """JSON of a table that keeps numbers only, with the command and the code that made it.

    Args:
        command: What makes the table again.
        rows: The numbers, ready for JSON.

    Returns:
        The text of the file.
    """
    return json.dumps({"command": command, "commit": code_commit(), "rows": rows}, indent=2) + "\n"


def compact_json(described: Mapping[str, Any]) -> str:
    """JSON with a line for each row of the table and for each of its runs.

    Indented, every score of every front would have a line of its own; on one line, no two versions
    of a file could be compared.

    Args:
        described: What :meth:`~lorpman.lab.reproduce.outcome.Outcome.to_json` gave.
    """
    head = [f"{json.dumps(key)}: {json.dumps(part)}" for key, part in described.items()
            if key != "rows"]  # fmt: skip
    rows = [_row_text(row) for row in described["rows"]]
    return "{\n" + ",\n".join([*head, '"rows": [\n' + ",\n".join(rows) + "\n]"]) + "\n}\n"


def _row_text(row: Mapping[str, Any]) -> str:
    head = [f"{json.dumps(key)}: {json.dumps(part)}" for key, part in row.items() if key != "runs"]
    runs = ",\n  ".join(json.dumps(run) for run in row["runs"])
    return " {" + ", ".join([*head, f'"runs": [\n  {runs}\n ]' if runs else '"runs": []']) + "}"


def _rounded(part: Any) -> Any:
    """All numbers of a note to the digits that a picture shows."""
    if isinstance(part, Mapping):
        return {key: _rounded(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_rounded(value) for value in part]
    return float(f"{part:.{_DIGITS}g}") if isinstance(part, float) else part
