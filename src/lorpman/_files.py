"""Files: written whole or not at all, never over what is not ours, and read with limits."""

import errno
import json
import math
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lorpman.errors import UsageError, check_kind, shown


def _umask() -> int:
    """Which rights the system takes from new files; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# Once, at import: later, another thread might make a file in between.
_UMASK = _umask()


@dataclass(frozen=True)
class Kind:
    """A kind of file that lorpman writes; see :func:`check_target`."""

    name: str
    """With its article, for messages: "a front"."""
    is_ours: Callable[[Path], bool]
    """Whether the content of a file shows that it is of this kind."""
    suffixes: tuple[str, ...] = ()
    """What the name may end in; empty for anything."""
    in_runs: bool = False
    """Whether anybody may write such a file under the name of a part of a run."""


# What stands in a run directory under fixed names. This room knows them to protect them only.
_RUN = "run.json"
_PARTS_OF_A_RUN = re.compile(
    r"run\.json|metrics\.jsonl|checkpoint(\.previous)?\.safetensors|ranks\.png|front(-\w+)?\.(json|png)"
)
# Run directories that this process writes into at the moment, and how often it said so.
_OWNED: Counter[Path] = Counter()


@contextmanager
def owning(folder: Path) -> Iterator[None]:
    """Inside this context, the parts of the run in ``folder`` may be written.

    For those who made the run, or have checked that it is the one they mean.

    Args:
        folder: The directory of the run.
    """
    folder = folder.resolve()
    _OWNED[folder] += 1
    try:
        yield
    finally:
        _OWNED[folder] -= 1


def as_path(name: str, value: object) -> Path:
    """A path that somebody gave.

    Args:
        name: What the argument is called.
        value: What was given.

    Raises:
        UsageError: If it cannot be the path of a file or folder.

    >>> as_path("out", "runs/mine").name
    'mine'
    """
    check_kind(name, value, (str, Path), "a path")
    text = str(value)
    # Halves of surrogate pairs are no characters, and a NUL ends a path.
    if not text or "\0" in text or any(0xD800 <= ord(c) < 0xDC80 for c in text):
        raise UsageError(f"{name} must be a path, got {shown(value)}")
    return Path(text)


def check_target(path: str | Path, kind: Kind) -> None:
    """Decide whether a file may be written: the one place for all files that lorpman writes.

    A new file may, and one of the same kind. A folder may not, nor a file of another kind or a
    part of a run. What is empty holds nothing that could be lost.

    Args:
        path: Where the file is to be.
        kind: What it is to be.

    Raises:
        UsageError: If it may not; the message says what is there instead.
    """
    path = Path(path)
    refused = f"cannot write '{path}'"
    # os.path, since the methods of Path raise for names that are too long.
    there = os.path.lexists(path)
    if not os.path.isdir(path.parent):  # noqa: PTH112
        raise UsageError(f"{refused}: there is no folder '{path.parent}'; make it first")
    if os.path.isdir(path):  # noqa: PTH112
        raise UsageError(f"{refused}: it is a directory; choose a file name")
    if there and not os.path.isfile(path):  # noqa: PTH113
        raise UsageError(f"{refused}: it is not a plain file; choose another name")
    if _PARTS_OF_A_RUN.fullmatch(path.name):
        if _OWNED[path.parent.resolve()] > 0:
            return
        if os.path.exists(path.parent / _RUN) and not kind.in_runs:  # noqa: PTH110
            raise UsageError(f"{refused}: it is a part of the run there; choose another name")
    if kind.suffixes and path.suffix.lower() not in kind.suffixes:
        expected = ", ".join(kind.suffixes)
        raise UsageError(f"{refused}: the name of {kind.name} ends in {expected}")
    if there and not _is_replaceable(path, kind):
        raise UsageError(
            f"{refused}: what is there is not {kind.name} of lorpman; remove it, or choose "
            "another name"
        )


def _is_replaceable(path: Path, kind: Kind) -> bool:
    try:
        # An empty file, perhaps made to reserve a name, holds nothing that could be lost.
        return path.stat().st_size == 0 or kind.is_ours(path)
    except (OSError, ValueError):
        return False


def near_start(*beginnings: bytes, within: int = 4096) -> Callable[[Path], bool]:
    """A test of files: whether one of the texts stands among the first ``within`` bytes.

    Args:
        beginnings: The texts.
        within: How many bytes are read.
    """

    def is_ours(path: Path) -> bool:
        with path.open("rb") as file:
            head = file.read(within)
        return any(beginning in head for beginning in beginnings)

    return is_ours


def json_with(*keys: str) -> Callable[[Path], bool]:
    """A test of files: whether one is a JSON object that has all these keys.

    Args:
        keys: The keys.
    """

    def is_ours(path: Path) -> bool:
        found = read_json(path, "file")
        return isinstance(found, dict) and all(key in found for key in keys)

    return is_ours


@contextmanager
def replacing(path: str | Path, kind: Kind) -> Iterator[Path]:
    """A temporary file beside ``path``, synced and renamed to it when the block succeeds.

    Args:
        path: The file to be written.
        kind: What it will be.

    Raises:
        UsageError: If it may not (:func:`check_target`) or cannot be written.
    """
    path = Path(path)
    check_target(path, kind)
    temporary = temporary_name(path)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            # Before the rename: after a power cut, the name must stand for a whole file.
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
        descriptor: Of the open file or folder.

    Returns:
        False if another process holds the lock.
    """
    # Imported here: only training and downloads need it.
    from filelock import lock_descriptor

    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        # Work goes on without a lock there, rather than not at all.
        if error.errno in _NO_LOCKS:
            return True
        raise


@contextmanager
def locked_folder(folder: Path, in_use: str) -> Iterator[None]:
    """Hold the lock of ``folder`` (see :func:`try_lock`) inside this context.

    Args:
        folder: An existing folder.
        in_use: What to say if another process holds it.

    Raises:
        UsageError: If another process holds it; with the message ``in_use``.
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


def temporary_name(path: Path) -> Path:
    """A new name beside ``path``, for a while; :func:`temporaries` finds it again.

    Args:
        path: What is to be written.
    """
    # Of its own, so that two writers never share a half-written file; the suffix stays last, since
    # it picks the format of a picture.
    return path.with_name(f".{path.stem}.{uuid.uuid4().hex}{path.suffix}")


def temporaries(path: Path) -> list[Path]:
    """What writers of ``path`` left behind when they were killed.

    Args:
        path: What was to be written.
    """
    # Exactly such names, and no others: ".mine.backup.json" may be somebody's own.
    name = re.compile(rf"\.{re.escape(path.stem)}\.[0-9a-f]{{32}}{re.escape(path.suffix)}")
    with suppress(OSError):
        return [found for found in path.parent.iterdir() if name.fullmatch(found.name)]
    return []


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, where the system lets a folder be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_bytes(path: str | Path, content: bytes, kind: Kind) -> None:
    """Put ``content`` at ``path`` in one step; see :func:`replacing`.

    Args:
        path: The file.
        content: All of it.
        kind: What it may replace.
    """
    with replacing(path, kind) as temporary:
        temporary.write_bytes(content)


def write_json(path: str | Path, value: Any, kind: Kind) -> None:
    """Write ``value`` as indented JSON, in one step; see :func:`replacing`.

    Args:
        path: The file.
        value: Anything that JSON can hold.
        kind: What it may replace.
    """
    write_bytes(path, (json.dumps(value, indent=2) + "\n").encode(), kind)


# Far beyond what lorpman writes, and far below what exhausts memory or the stack.
_LONGEST = 256 * 2**20
_DEEPEST = 64
_LARGEST = 2**63


def read_json(path: Path, what: str) -> Any:
    """Read JSON from a file.

    Args:
        path: The file.
        what: What it should be, for messages.

    Returns:
        The value: lists, dicts with text keys, texts, numbers, truth values and None.

    Raises:
        UsageError: If it is missing, damaged, too long or too deep; the message names it.
    """
    try:
        if path.stat().st_size > _LONGEST:
            raise UsageError(f"longer than {_LONGEST >> 20} MiB")
        return parse_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"no {what} at {path}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{what} {path} cannot be read: {error}") from None


def parse_json(content: bytes | str) -> Any:
    """Read JSON as everything from outside is read: with limits.

    Args:
        content: The text; bytes are UTF-8.

    Returns:
        The value, as :func:`read_json` gives it.

    Raises:
        UsageError: If it is no JSON, nested deeper than 64 levels, or holds a number that is not
            finite or beyond 64 bits.

    >>> parse_json('{"rank": 8}')
    {'rank': 8}
    >>> parse_json("[NaN]")
    Traceback (most recent call last):
    lorpman.errors.UsageError: NaN is not a number
    """
    try:
        text = content if isinstance(content, str) else content.decode("utf-8")
        value = json.loads(text, parse_int=_int, parse_float=_float, parse_constant=_float)
    except UsageError:
        raise
    except RecursionError:
        raise UsageError(f"nested deeper than {_DEEPEST} levels") from None
    except ValueError as error:
        raise UsageError(f"no valid JSON: {error}") from None
    if _depth(value) > _DEEPEST:
        raise UsageError(f"nested deeper than {_DEEPEST} levels")
    return value


def _int(text: str) -> int:
    # Measured first: to read thousands of digits is slow, and Python refuses it.
    if len(text) > 20 or not -_LARGEST <= int(text) < _LARGEST:
        raise UsageError(f"the number {text[:20]}... is too large")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise UsageError(f"{text[:20]} is not a number")
    return value


def _depth(value: Any) -> int:
    """How many lists and objects stand in each other; without recursion."""
    depth, level = 0, [value]
    while level and depth <= _DEEPEST:
        inner = [
            v.values() if isinstance(v, dict) else v for v in level if isinstance(v, dict | list)
        ]
        if not inner:
            break
        depth, level = depth + 1, [value for values in inner for value in values]
    return depth
