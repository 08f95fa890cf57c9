"""The table of a run as text, for a terminal and for a page."""

from collections.abc import Mapping, Sequence
from typing import Any

HEADER = ("row", "what", "at most", "measured", "")
_WORDS = {"met": "met", "missed": "NOT met", "skipped": "skipped", "failed": "FAILED"}


def number(value: float | None, unit: str) -> str:
    """A measured value with its unit.

    >>> number(0.913, "x"), number(0.0213, "%"), number(0.481, "s"), number(None, "x")
    ('0.91 x', '2.1 %', '0.48 s', '-')
    """
    if value is None:
        return "-"
    if unit == "%":
        return f"{100 * value:.1f} %"
    digits = 3 if abs(value) < 0.1 else 2
    return f"{value:.{digits}f} {unit}"


def lines(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The cells of every row, from the rows of a run's JSON."""
    return [
        (
            row["name"],
            row["what"],
            number(row["target"], row["unit"]),
            number(row["value"], row["unit"]),
            _WORDS[row["status"]],
        )
        for row in rows
    ]


def as_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """For a terminal: aligned columns, and below them what must be known about a row."""
    cells = [HEADER, *lines(rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADER))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    notes = [f"{row['name']}: {note}" for row in rows for note in _remarks(row)]
    return "\n".join([*text, *([""] if notes else []), *notes])


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """For a page."""
    head = ["| row | what | at most | measured | | rounds |", "|---|---|---|---|---|---|"]
    body = [
        "| " + " | ".join([*line, str(row["count"])]) + " |"
        for row, line in zip(rows, lines(rows), strict=True)
    ]
    notes = [f"- `{row['name']}`: {note}" for row in rows for note in _remarks(row)]
    return "\n".join([*head, *body, *([""] if notes else []), *notes])


def _remarks(row: Mapping[str, Any]) -> list[str]:
    unit = row["unit"]
    further = [f"{label}: {number(value, unit)}" for label, value in row["also"].items()]
    return [*([row["note"]] if row["note"] else []), *further]
