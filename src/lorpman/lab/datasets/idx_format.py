"""The idx format of MNIST: a type, the sizes, and the bytes; plain or gzipped."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lorpman.lab.datasets.file_errors import damaged_file, missing_file


def find(folder: Path, name: str, problem: str) -> Path:
    """The file of that name, plain or gzipped.

    Args:
        folder: Where to look.
        name: Without ``.gz``.
        problem: Whose file it is, for the message.

    Returns:
        Its path.

    Raises:
        UsageError: If there is neither.
    """
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise missing_file(folder / f"{name}.gz", problem, folder.parent)


def read(path: Path, dimensions: int) -> Tensor:
    """The content of an idx file of bytes.

    Args:
        path: The file; gzipped if its name ends in ``.gz``.
        dimensions: How many it must have.

    Returns:
        A tensor of bytes with the shape that the file states.

    Raises:
        UsageError: If the file is not whole, or something else.
    """
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise damaged_file(path, f"is not a whole gzip file ({error})") from error
    # Two zeros, the type (8: bytes), the number of dimensions, then four bytes for each size.
    header = 4 + 4 * dimensions
    if raw[:4] != bytes([0, 0, 8, dimensions]) or len(raw) < header:
        raise damaged_file(path, f"is not an idx file of bytes with {dimensions} dimensions")
    shape = np.frombuffer(raw, ">u4", dimensions, offset=4).astype(int).tolist()
    expected = header + int(np.prod(shape))
    if len(raw) != expected:
        raise damaged_file(path, f"is truncated or too long: {len(raw)} bytes, expected {expected}")
    # A copy, since torch warns of memory that cannot be written to.
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=header).reshape(shape).copy())
