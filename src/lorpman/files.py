"""Writing files so that they appear whole or not at all."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from lorpman.errors import UsageError


def write_text(path: Path, text: str) -> None:
    """Write ``text`` by way of a temporary file in the same folder, fsync and rename."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as indented JSON, atomically."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def read_json(path: Path, what: str) -> Any:
    """Read JSON; a missing or damaged file is a :class:`UsageError` that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"no {what} at {path}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UsageError(f"{what} {path} cannot be read: {error}") from None
