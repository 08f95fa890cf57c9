"""Files that are either the old ones or the new ones, never half of one."""

import errno
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from lorpman.errors import UsageError


def _umask() -> int:
    """What new files may not be; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# Once, at import: later, another thread might make a file in between.
_UMASK = _umask()


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary file beside ``path``, synced and renamed to it when the block succeeds."""
    path = Path(path)
    # A name of its own, so that two writers never share a half-written file; the suffix stays
    # last, since it picks the format of a picture.
    temporary = path.with_name(f".{path.stem}.{uuid.uuid4().hex}{path.suffix}")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        # Some writers make files that only their owner may read.
        temporary.chmod(0o666 & ~_UMASK)
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        fix = "choose a file in a folder that exists and can be written to"
        raise UsageError(f"cannot write '{path}': {error.strerror or error}; {fix}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Nobody else holds ``folder`` inside this context; it ends with the process at the latest.

    Where the system or the file system has no locks, nothing is held.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise UsageError(
            f"{folder} is in use by another training; wait for its end, or choose another --out"
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
            raise
    try:
        yield
    finally:
        os.close(handle)


def temporaries(path: Path) -> list[Path]:
    """What writers of ``path`` left behind when they were killed."""
    return list(path.parent.glob(f".{path.stem}.*{path.suffix}"))


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, where the system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as indented JSON, in one step."""
    write_bytes(path, (json.dumps(value, indent=2) + "\n").encode())


def read_json(path: Path, what: str) -> Any:
    """Read JSON; a missing or damaged file is a :class:`UsageError` that names it."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"no {what} at {path}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{what} {path} cannot be read: {error}") from None


def is_checkpoint(path: Path) -> bool:
    """Whether the file at ``path`` is one, of any version."""
    try:
        with safe_open(path, framework="pt") as file:
            return any(key.startswith("lorpman-checkpoint") for key in file.metadata() or {})
    except (OSError, SafetensorError):
        return False
