"""The table of a run as text, for a terminal and for a page."""

from collections.abc import Mapping, Sequence
from typing import Any

HEADER = ("row", "what", "at most", "measured", "")
_WORDS = {"met": "met", "missed": "NOT met", "skipped": "skipped", "failed": "FAILED"}


def format_number(value: float | None, unit: str) -> str:
    """A measured value with its unit.

    Args:
        value: The value; None if there is none.
        unit: ``x`` for a ratio, ``s`` for seconds, ``%`` for a share.

    >>> format_number(0.913, "x"), format_number(0.0213, "%"), format_number(0.481, "s")
    ('0.91 x', '2.1 %', '0.48 s')
    >>> format_number(None, "x")
    '-'
    """
    if value is None:
        return "-"
    if unit == "%":
        return f"{100 * value:.1f} %"
    digits = 3 if abs(value) < 0.1 else 2
    return f"{value:.{digits}f} {unit}"


def cells_of(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The cells of every row of the table.

    Args:
        rows: The rows of a run's JSON.

    Returns:
        For each row its name, what it says, its target, its value and its status in words.
    """
    return [
        (
            row["name"],
            row["what"],
            format_number(row["target"], row["unit"]),
            format_number(row["value"], row["unit"]),
            _WORDS[row["status"]],
        )
        for row in rows
    ]


def as_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table for a terminal: aligned columns, and below them remarks on the rows.

    Args:
        rows: Those of a run's JSON.

    Returns:
        The text.
    """
    cells = [HEADER, *cells_of(rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(HEADER))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    notes = [f"{row['name']}: {note}" for row in rows for note in _remarks(row)]
    return "\n".join([*text, *([""] if notes else []), *notes])


def as_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table for a page, with the number of rounds, and below it remarks on the rows.

    Args:
        rows: Those of a run's JSON.

    Returns:
        The text.
    """
    head = ["| row | what | at most | measured | | rounds |", "|---|---|---|---|---|---|"]
    body = [
        "| " + " | ".join([*line, str(row["count"])]) + " |"
        for row, line in zip(rows, cells_of(rows), strict=True)
    ]
    notes = [f"- `{row['name']}`: {note}" for row in rows for note in _remarks(row)]
    return "\n".join([*head, *body, *([""] if notes else []), *notes])


def _remarks(row: Mapping[str, Any]) -> list[str]:
    unit = row["unit"]
    further = [f"{label}: {format_number(value, unit)}" for label, value in row["also"].items()]
    return [*([row["note"]] if row["note"] else []), *further]
