"""Prepared tensors on disk: made once, memory-mapped ever after, made anew when anything changed.

A cache file is a safetensors file whose name holds the preparation's key: the sources' checksum,
the preparation's version, and its options. It is written under a temporary name, flushed, and
renamed; so a reader sees a whole file or none, and of two processes that prepare the same thing
the later one wins with equal content.
"""

import errno
import hashlib
import json
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lorpman.errors import UsageError

Tensors = dict[str, Tensor]
Layout = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""The shape and type of every tensor, by name."""

# As safetensors calls the types.
_TYPE_NAMES = {
    torch.uint8: "U8",
    torch.int8: "I8",
    torch.int64: "I64",
    torch.float32: "F32",
}
_NUMPY = {"U8": np.uint8, "I8": np.int8, "I64": np.int64, "F32": np.float32}
# Up to this size a file is read through and checked on opening, which also warms the page cache;
# beyond it only the structure is checked.
_CHECKED_BYTES = 1 << 30
# Of the data in the file: memory maps begin at a page, so tensors are aligned in memory too.
_ALIGNMENT = 64


@dataclass(frozen=True)
class Preparation:
    """What a cache file was made from; two of them are one if their keys are equal.

    Args:
        name: The problem, the beginning of the file's name.
        version: Raised whenever the code that prepares changes its result.
        source: A checksum of the source files, see :func:`content_checksum` and
            :func:`listing_checksum`.
        options: Everything else that the result depends on.
    """

    name: str
    version: int
    source: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Where the prepared tensors are kept."""
        described = [self.name, self.version, self.source, sorted(self.options.items())]
        key = hashlib.sha256(json.dumps(described).encode()).hexdigest()[:20]
        return cache_directory() / f"{self.name}-v{self.version}-{key}.safetensors"


def cache_directory() -> Path:
    """``LORPMAN_CACHE`` if set, else ``lorpman`` in the platform's cache directory."""
    if chosen := os.environ.get("LORPMAN_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "lorpman"


def content_checksum(paths: Iterable[Path]) -> str:
    """SHA-256 of the files' names and contents; for sources of a few hundred megabytes.

    Args:
        paths: The files, in an order that is always the same.

    Returns:
        Hexadecimal digits.
    """
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def listing_checksum(paths: Iterable[Path]) -> str:
    """SHA-256 of names, sizes and times of change; for sources of very many files.

    Args:
        paths: The files, in an order that is always the same.

    Returns:
        Hexadecimal digits.
    """
    digest = hashlib.sha256()
    for path in paths:
        stat = path.stat()
        digest.update(f"{path.name}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def cached(preparation: Preparation, build: Callable[[], Tensors]) -> Tensors:
    """The tensors that ``build`` returns, from the cache if they are there.

    Args:
        preparation: What they are made from.
        build: Makes them, where the cache does not have them.

    Returns:
        Memory-mapped tensors by name; changes to them do not reach the file.

    Raises:
        UsageError: If the cache cannot be written or has no room.
    """
    if (tensors := _open(preparation.path)) is not None:
        return tensors
    built = {name: tensor.contiguous() for name, tensor in build().items()}

    def fill(out: Tensors) -> None:
        for name, tensor in built.items():
            out[name].copy_(tensor)

    layout = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in built.items()}
    return cached_in_place(preparation, layout, fill)


def cached_in_place(
    preparation: Preparation, layout: Layout, fill: Callable[[Tensors], None]
) -> Tensors:
    """The tensors of ``layout``, from the cache or as ``fill`` writes them, straight to disk.

    For data that need not fit in memory.

    Args:
        preparation: What the tensors are made from.
        layout: Their shapes and types.
        fill: Gets tensors that are mapped to the new file, and writes into them.

    Returns:
        Memory-mapped tensors by name; changes to them do not reach the file.

    Raises:
        UsageError: If the cache cannot be written or has no room.
    """
    path = preparation.path
    if (tensors := _open(path)) is not None:
        return tensors
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-")
    except OSError as error:
        raise UsageError(
            f"cannot write the cache {path.parent}: {error.strerror}; "
            "set LORPMAN_CACHE to a directory that can be written"
        ) from error
    os.close(handle)
    temporary = Path(name)
    try:
        _write(temporary, layout, fill)
        temporary.replace(path)
    except BaseException:  # Ctrl-C too: half a cache of gigabytes must not stay behind
        temporary.unlink(missing_ok=True)
        raise
    _remove_leftovers(path, preparation)
    tensors = _open(path)
    if tensors is None:
        raise UsageError(f"{path} cannot be read back; is the disk full or failing?")
    return tensors


def _remove_leftovers(path: Path, preparation: Preparation) -> None:
    """Remove what older versions of this preparation left, and what killed processes did."""
    current = f"{preparation.name}-v{preparation.version}-"
    with suppress(OSError):
        for other in path.parent.glob(f"{preparation.name}-v*-*.safetensors"):
            if not other.name.startswith(current):
                other.unlink(missing_ok=True)
        for other in path.parent.glob(f".{preparation.name}-v*"):
            # A younger one may belong to a process that is still at work.
            if time.time() - other.stat().st_mtime > 86_400:
                other.unlink(missing_ok=True)


def _write(path: Path, layout: Layout, fill: Callable[[Tensors], None]) -> None:
    # The header comes first in the file, but its checksum is known last: it is written twice.
    header, start, total = _header(layout, crc=0)
    with path.open("r+b") as file:
        file.write(header)
        file.flush()
        _reserve(file.fileno(), start + total, path)
        fill(_tensors(path, "r+"))
        crc = _crc(path, start) if total <= _CHECKED_BYTES else 0
        file.seek(0)
        file.write(_header(layout, crc)[0])
        file.flush()
        os.fsync(file.fileno())


def _reserve(descriptor: int, size: int, path: Path) -> None:
    """Take the space at once: a disk that fills up under a memory map kills the process."""
    os.ftruncate(descriptor, size)
    # macOS and Windows cannot reserve; there the file only has its length.
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise UsageError(
                f"no room for a cache of {size / 1e6:.0f} MB in {path.parent}; "
                "free some, or set LORPMAN_CACHE to another directory"
            ) from error


def _header(layout: Layout, crc: int) -> tuple[bytes, int, int]:
    """The file's beginning, its length (where the data starts), and the data's length."""
    entries: dict[str, Any] = {"__metadata__": {"crc32": f"{crc:08x}"}}
    offset = 0
    # The widest types first: then every tensor is aligned, with no gaps (the format has none).
    for name, (shape, dtype) in sorted(layout.items(), key=lambda item: -item[1][1].itemsize):
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        entries[name] = {
            "dtype": _TYPE_NAMES[dtype],
            "shape": list(shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(entries).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text, 8 + len(text), offset


def _open(path: Path) -> Tensors | None:
    """The tensors of a whole and sound cache file, memory-mapped; None if it is not one."""
    try:
        header, start = _read_header(path)
        end = max(e["data_offsets"][1] for k, e in header.items() if k != "__metadata__")
        if path.stat().st_size != start + end:
            return None
        expected = int(header["__metadata__"]["crc32"], 16)
        if end <= _CHECKED_BYTES and _crc(path, start) != expected:
            return None
        # Copy on write: nobody who changes a tensor in place can change the cache.
        return _tensors(path, "c")
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_header(path: Path) -> tuple[dict[str, Any], int]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        # In a damaged file these 8 bytes may say anything; do not read gigabytes for it.
        if length > 1 << 20:
            raise ValueError("not a header")
        return json.loads(file.read(length)), 8 + length


def _tensors(path: Path, mode: Any) -> Tensors:
    """Memory maps of a file's tensors: ``r+`` writes through, ``c`` keeps changes to itself."""
    header, start = _read_header(path)
    memory = np.memmap(path, np.uint8, mode)
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (start + offset for offset in entry["data_offsets"])
            array = memory[begin:end].view(_NUMPY[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = torch.from_numpy(array)
    return tensors


def _crc(path: Path, start: int) -> int:
    crc = 0
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(1 << 22):
            crc = zlib.crc32(block, crc)
    return crc
