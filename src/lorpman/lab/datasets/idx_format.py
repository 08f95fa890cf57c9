"""The idx format of MNIST: a type, the sizes, and the bytes; plain or gzipped."""

import gzip
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lorpman.lab.datasets.splits import damaged, missing


def find(folder: Path, name: str, problem: str) -> Path:
    """The file ``name`` or ``name.gz`` in ``folder``."""
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise missing(folder / f"{name}.gz", problem, folder.parent)


def read(path: Path, dimensions: int) -> Tensor:
    """The bytes of an idx file with the given number of dimensions, as a uint8 tensor."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, f"is not a whole gzip file ({error})") from error
    header = 4 + 4 * dimensions
    if raw[:4] != bytes([0, 0, 8, dimensions]) or len(raw) < header:
        raise damaged(path, f"is not an idx file of bytes with {dimensions} dimensions")
    shape = np.frombuffer(raw, ">u4", dimensions, offset=4).astype(int).tolist()
    expected = header + int(np.prod(shape))
    if len(raw) != expected:
        raise damaged(path, f"is truncated or too long: {len(raw)} bytes, expected {expected}")
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=header).reshape(shape).copy())
