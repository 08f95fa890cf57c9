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


# What a file system that has no locks answers.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS})


def try_lock(descriptor: int) -> bool:
    """Keep other processes from locking an open file or folder, without waiting for them.

    The lock ends when the descriptor is closed, so with the process at the latest, and leaves
    nothing on disk. Where the file system has no locks, nothing is held, and nobody is refused.

    Args:
        descriptor: of the open file or folder.

    Returns:
        False if another process holds the lock.
    """
    # Imported here: only training and downloads need it.
    from filelock import lock_descriptor

    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return True
        raise


@contextmanager
def locked_folder(folder: Path, in_use: str) -> Iterator[None]:
    """Hold the lock of ``folder`` (see :func:`try_lock`) inside this context.

    Args:
        folder: an existing folder.
        in_use: what to say if another process holds it.

    Raises:
        UsageError: another process holds it; with the message ``in_use``.
    """
    # Windows cannot open folders, so nothing is held there.
    if os.name == "nt":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not try_lock(descriptor):
            raise UsageError(in_use)
        yield
    finally:
        os.close(descriptor)


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
