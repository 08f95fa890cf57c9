"""What came of a reproduction: the records of its runs, line by line, as JSON keeps them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lorpman.errors import UsageError
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.reproduce.number_format import spread
from lorpman.lab.reproduce.reproduction import NOISE_EPOCHS, Line, Plan, Reported, Reproduction
from lorpman.lab.reproduce.run_record import RunRecord
from lorpman.lab.runs.spec import Scale


@dataclass(frozen=True, eq=False)
class MeasuredLine:
    """A line of the table with the runs that there are of it."""

    line: Line
    records: Sequence[RunRecord]
    """What is kept of its runs."""
    state: str = ""
    """Why there is no run, if there is none."""

    def values(self, column: str) -> tuple[float, ...]:
        """What was measured for one column, one number per run.

        Args:
            column: The key of the column.
        """
        return tuple(record.values[column] for record in self.records)

    @property
    def parameters(self) -> int | None:
        """How many parameters a run learns; None without a run."""
        return self.records[0].parameters if self.records else None


@dataclass(frozen=True, eq=False)
class Outcome:
    """A reproduction that was made: what its table, JSON and picture show."""

    reproduction: Reproduction
    """Which table or figure it is."""
    scale: Scale
    """How much of it was done."""
    seeds: tuple[int, ...]
    """Those that were asked for."""
    lines: tuple[MeasuredLine, ...]
    """What was measured, in the order of the table."""
    data_note: str = ""
    """How the data differs from the official splits, if it does."""
    generated: bool = False
    """The data is noise in the layout of the real files."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why a run failed, by the name of its directory."""

    @property
    def plan(self) -> Plan:
        """What was to be done at this scale."""
        return self.reproduction.plan(self.scale)

    @property
    def reduction(self) -> str:
        """All that is less than the paper's protocol; empty if nothing is."""
        preset = get_problem(self.plan.problem).preset()
        asked, here = len(self.reproduction.paper.seeds), len(self.seeds)
        fewer = f"{here} seed{'s' * (here > 1)} instead of {asked}" if here < asked else ""
        parts = [self.plan.reduction, fewer]
        if self.scale == "laptop" and preset.laptop is not None:
            parts.append(preset.laptop.stated)
        if self.generated:
            parts.append(f"on generated files, {NOISE_EPOCHS} epochs")
        return "; ".join(part for part in parts if part)

    @property
    def comparable(self) -> bool:
        """Whether the numbers may stand on one axis with the paper's."""
        same = self.plan.problem == self.reproduction.paper.problem
        reduced = self.scale == "laptop" and get_problem(self.plan.problem).preset().laptop
        return same and not (reduced or self.generated or self.data_note)

    @property
    def command(self) -> str:
        """The command that makes all of it again."""
        command = f"lorpman reproduce {self.reproduction.name} --scale {self.scale}"
        if self.seeds != self.plan.seeds:
            command += f" --seeds {','.join(map(str, self.seeds))}"
        return command + " --data DIR" * self.generated

    @property
    def made(self) -> list[MeasuredLine]:
        """The lines of which there are runs."""
        return [line for line in self.lines if line.records]

    @property
    def records(self) -> list[RunRecord]:
        """The records of all lines."""
        return [record for line in self.lines for record in line.records]

    def to_json(self) -> dict[str, Any]:
        """Everything for programs: the numbers, the runs, and the fronts themselves."""
        return {
            "name": self.reproduction.name,
            "what": self.reproduction.what,
            "command": self.command,
            "problem": self.plan.problem,
            "scale": self.scale,
            "reduction": self.reduction,
            "comparable": self.comparable,
            "generated": self.generated,
            "data": self.data_note,
            "seeds": list(self.seeds),
            "failures": dict(self.failures),
            "rows": [self._line_json(line) for line in self.lines],
        }

    def _line_json(self, measured: MeasuredLine) -> dict[str, Any]:
        reported, parameters = self.reproduction.reported(measured.line)
        ours = {
            column.key: spread(measured.values(column.key)) for column in self.reproduction.columns
        }
        return {
            "label": measured.line.label,
            "method": measured.line.method,
            "state": measured.state or "run",
            "ours": {key: _number_json(number) for key, number in ours.items() if number},
            "paper": {key: _number_json(number) for key, number in reported.items()},
            "parameters": {"ours": measured.parameters, "paper": parameters},
            "runs": [record.to_json() for record in measured.records],
        }


def outcome_from_json(reproduction: Reproduction, described: Mapping[str, Any]) -> Outcome:
    """Read what :meth:`Outcome.to_json` gave.

    Args:
        reproduction: The row of the registry that it is of.
        described: The JSON.

    Returns:
        The outcome; its means and the paper's numbers are taken from the records and from the
        registry, not from the JSON, where they stand for people and programs to read.

    Raises:
        UsageError: If a part is missing, or the JSON has other lines than the reproduction.
    """
    try:
        rows = {row["label"]: row for row in described["rows"]}
        if list(rows) != [line.label for line in reproduction.lines]:
            raise UsageError(f"{described['name']} has other lines than {reproduction.name}")
        return Outcome(
            reproduction=reproduction,
            scale=described["scale"],
            seeds=tuple(described["seeds"]),
            lines=tuple(_measured_line(line, rows[line.label]) for line in reproduction.lines),
            data_note=described["data"],
            generated=described["generated"],
            failures=described["failures"],
        )
    except (KeyError, TypeError) as error:
        raise UsageError(f"this is not what a reproduction writes: {error}") from None


def _measured_line(line: Line, row: Mapping[str, Any]) -> MeasuredLine:
    state = "" if row["state"] == "run" else row["state"]
    return MeasuredLine(line, [RunRecord.from_json(run) for run in row["runs"]], state)


def _number_json(number: Reported) -> dict[str, float | None]:
    return {"mean": number.mean, "deviation": number.deviation}
