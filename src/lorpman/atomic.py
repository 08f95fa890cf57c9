"""Files that are either the old ones or the new ones, never half of one."""

import contextlib
import os
import uuid
from pathlib import Path

from lorpman.errors import UsageError


def write_bytes(path: str | Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step: written and synced beside it, then renamed."""
    path = Path(path)
    # A name of its own, so that two writers never share a half-written file.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        fix = "choose a file in a folder that exists and can be written to"
        raise UsageError(f"cannot write '{path}': {error.strerror}; {fix}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
