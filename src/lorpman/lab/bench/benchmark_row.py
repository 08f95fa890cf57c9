"""A row of the benchmark's table: what is measured, and what it may cost at most."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lorpman.lab.bench.timing import Conditions, Times

Status = Literal["met", "missed", "skipped", "failed"]


@dataclass(frozen=True)
class Measurement:
    """What measuring a row gave."""

    value: float
    """To be compared with the target."""
    rounds: Times
    """Everything that was measured, by contender: seconds, or bytes for memory."""
    also: Mapping[str, float] = field(default_factory=dict)
    """Further numbers from the same rounds, by what they are."""
    note: str = ""
    """What a reader must know about this number."""


class Skipped(Exception):
    """A row cannot be measured here.

    Args:
        reason: Why not, for the reader of the table.
        also: Numbers that were measured all the same.
    """

    def __init__(self, reason: str, also: Mapping[str, float] | None = None) -> None:
        super().__init__(reason)
        self.also = dict(also or {})


@dataclass(frozen=True)
class BenchmarkRow:
    """One row: a name for ``--only``, what it says, its target, and how it is measured."""

    name: str
    """What ``--only`` calls it."""
    what: str
    """What is compared with what, for the table."""
    target: float
    """The most that it may be."""
    measure: Callable[[Conditions], Measurement]
    """Measures it."""
    unit: str = "x"
    """``x`` for a ratio, ``s`` for seconds, ``%`` for a share."""


@dataclass(frozen=True)
class RowResult:
    """A row after it was run."""

    name: str
    what: str
    target: float
    unit: str
    status: Status
    """Whether the target was met, or why there is no value."""
    value: float | None = None
    """What was measured; None if nothing was."""
    count: int = 0
    """Rounds."""
    seconds: float = 0.0
    """Of the whole row."""
    note: str = ""
    """What a reader must know, or why there is no value."""
    also: Mapping[str, float] = field(default_factory=dict)
    """As in :class:`Measurement`."""
    rounds: Times = field(default_factory=dict)
    """As in :class:`Measurement`."""

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)

    @classmethod
    def of(cls, row: BenchmarkRow, measured: Measurement, seconds: float) -> "RowResult":
        """The result of a row that was measured.

        Args:
            row: What was measured.
            measured: What that gave.
            seconds: How long the whole row took.

        Returns:
            The result: met if the value is at most the target, else missed.
        """
        return cls(
            row.name,
            row.what,
            row.target,
            row.unit,
            status="met" if measured.value <= row.target else "missed",
            value=measured.value,
            count=max((len(times) for times in measured.rounds.values()), default=0),
            seconds=seconds,
            note=measured.note,
            also=measured.also,
            rounds=measured.rounds,
        )

    @classmethod
    def without(
        cls, row: BenchmarkRow, status: Status, note: str, also: Mapping[str, float], seconds: float
    ) -> "RowResult":
        """The result of a row that could not be measured.

        Args:
            row: What should have been measured.
            status: ``skipped`` or ``failed``.
            note: Why.
            also: Numbers that were measured all the same.
            seconds: How long the attempt took.

        Returns:
            The result, which has no value.
        """
        return cls(
            row.name, row.what, row.target, row.unit, status, note=note, also=also, seconds=seconds
        )
