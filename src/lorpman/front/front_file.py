"""How a front is kept in a file: JSON that people can read and that round-trips exactly."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lorpman._files import Kind, near_start, parse_json, write_bytes
from lorpman.errors import UsageError

if TYPE_CHECKING:
    from lorpman.front.front import Front

FORMAT = "lorpman-front/1"
KIND = Kind("a front", near_start(b'"lorpman-front/'), in_runs=True)
_NEEDED = ("alphas", "scores", "tasks", "maximise", "reference")
_TABLES = ("alphas", "scores", "losses")


def write_front(front: "Front", path: str | Path, control: Mapping[str, Any] | None = None) -> None:
    """Write a front into a file, all of it or nothing.

    Args:
        front: The front.
        path: The file.
        control: What the front gives up against retrained networks, for readers of the file; see
            :meth:`lorpman.front.control.Control.to_json`.

    Raises:
        UsageError: If the file cannot be written.
    """
    write_bytes(path, _to_json(front, control).encode(), KIND)


def read_fields(content: bytes) -> dict[str, Any]:
    """The arguments of :class:`~lorpman.front.front.Front` from what :func:`write_front` wrote.

    Args:
        content: The bytes of the file.

    Raises:
        UsageError: If the content is no JSON, of another format, or lacks a field.
        TypeError: If a table holds something other than rows of numbers.
        ValueError: If the rows of a table differ in length.
    """
    document = parse_json(content)
    written = document.get("format") if isinstance(document, dict) else None
    if written != FORMAT:
        raise UsageError(f"its format is {written!r}, expected '{FORMAT}'")
    missing = [key for key in _NEEDED if document.get(key) is None]
    if missing:
        raise UsageError(f"it lacks {', '.join(missing)}")
    fields = {key: document[key] for key in _NEEDED} | {"label": str(document.get("label", ""))}
    for key in _TABLES:
        if document.get(key) is not None:
            # As NaN, which Front refuses with the place where it is.
            rows = [[math.nan if x is None else x for x in row] for row in document[key]]
            fields[key] = torch.tensor(rows, dtype=torch.float64)
    return fields


def _to_json(front: "Front", control: Mapping[str, Any] | None) -> str:
    """One line per point; the hypervolume is there for readers without lorpman."""
    try:
        volume = dict(zip(("value", "stderr", "method"), front.hypervolume(), strict=True))
    except UsageError:  # a volume that no float holds must not keep the scores from being saved
        volume = {}
    parts: dict[str, Any] = {"format": FORMAT, "label": front.label, "tasks": front.tasks}
    parts |= {"maximise": front.maximise, "reference": front.reference, "hypervolume": volume}
    if control is not None:
        parts["control"] = control
    lines = [f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in parts.items()]
    for key in _TABLES:
        table = getattr(front, key)
        if table is not None:
            # numpy's str is the shortest text that gives the same float32 or float64 back.
            rows = [", ".join(str(x) for x in row) for row in table.numpy()]
            body = ",\n".join(f"    [{row}]" for row in rows)
            lines.append(f'  "{key}": [\n{body}\n  ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"
