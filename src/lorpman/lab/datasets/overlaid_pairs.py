"""MultiMNIST and MultiFashion: two digits (or garments) laid over each other, two labels.

Each sample takes two different images of the original set, uniformly at random. The left one
lies at rows and columns 0..27 of an empty 36x36 canvas, the right one at 6..33; where they
overlap, the brighter pixel wins. The canvas is then shrunk to 28x28 as Pillow's bicubic filter
does for an image of floats, so values leave 0..1 slightly; no mean or deviation is removed.
"""

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from lorpman.errors import UsageError, unknown
from lorpman.lab.datasets import idx_format
from lorpman.lab.datasets.file_errors import damaged_file
from lorpman.lab.datasets.prepared_cache import Preparation, Tensors, cached, content_checksum
from lorpman.lab.datasets.splits import Arrays, Splits

CANVAS = 36
SIDE = 28
SHIFT = 6
FOLDERS = {"mnist": "multimnist", "fashion": "multifashion"}
# To be raised when the same files would give other tensors: caches of the old number are not used.
VERSION = 1


def load(
    root: Path,
    source: Literal["mnist", "fashion"] = "mnist",
    sizes: tuple[int, int, int] = (50_000, 10_000, 10_000),
    seed: int = 0,
) -> Splits:
    """Inputs ``[n, 1, 28, 28]``, targets left ``[n]`` and right ``[n]``, from ``root/source``.

    Args:
        root: The data directory.
        source: Which original set, and its folder: ``mnist`` or ``fashion``.
        sizes: Training, validation and test samples. The pairs of the first two come from the
            original training set and are drawn independently, so cutting them is a random split.
        seed: Draws the pairs; the default is the one that all results use.

    Returns:
        The three splits.

    Raises:
        UsageError: If a file is missing or damaged, or a size is below 1.
    """
    if source not in FOLDERS:
        raise unknown("source", source, FOLDERS)
    if min(sizes) < 1:
        raise UsageError(f"sizes must be three positive numbers, got {sizes}")
    folder, problem = Path(root) / source, FOLDERS[source]
    names = [f"{p}-{k}" for p in ("train", "t10k") for k in ("images-idx3", "labels-idx1")]
    paths = [idx_format.find(folder, f"{name}-ubyte", problem) for name in names]
    options = {"sizes": list(sizes), "seed": seed}
    preparation = Preparation(problem, VERSION, content_checksum(paths), options)
    tensors = cached(preparation, lambda: _prepare(paths, sizes, seed))
    train, validation, test = (
        Arrays(tensors[f"{name}.x"], [tensors[f"{name}.left"], tensors[f"{name}.right"]])
        for name in ("train", "validation", "test")
    )
    return Splits(train, validation, test)


def _prepare(paths: list[Path], sizes: tuple[int, int, int], seed: int) -> Tensors:
    rng = np.random.default_rng(seed)
    train, test = _read(paths[0], paths[1]), _read(paths[2], paths[3])
    out = {}
    for name, originals, n in zip(
        ("train", "validation", "test"), (train, train, test), sizes, strict=True
    ):
        images, labels = originals
        left, right = pairs(len(images), n, rng)
        out[f"{name}.x"] = overlay(images, left, right)
        out[f"{name}.left"], out[f"{name}.right"] = labels[left], labels[right]
    return out


def _read(images: Path, labels: Path) -> tuple[Tensor, Tensor]:
    x, y = idx_format.read(images, 3), idx_format.read(labels, 1).long()
    if x.shape[1:] != (SIDE, SIDE):
        raise damaged_file(images, f"holds images of {tuple(x.shape[1:])}, expected (28, 28)")
    if len(x) != len(y) or len(x) < 2:
        raise damaged_file(labels, f"holds {len(y)} labels for {len(x)} images")
    if y.max() > 9:
        raise damaged_file(labels, f"holds the label {int(y.max())}, expected 0..9")
    return x, y


def pairs(available: int, n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Draw pairs of two different images, uniformly.

    Args:
        available: How many images there are.
        n: How many pairs to draw.
        rng: Draws them.

    Returns:
        The indices of the left and of the right images, ``[n]`` each.
    """
    left = rng.integers(0, available, n)
    # An offset of at least one: the two are never the same image.
    right = (left + rng.integers(1, available, n)) % available
    return torch.from_numpy(left), torch.from_numpy(right)


def overlay(images: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Lay pairs of images over each other.

    Args:
        images: Bytes, ``[k, 28, 28]``.
        left: Which image lies at the upper left, ``[n]``.
        right: Which lies at the lower right, ``[n]``.

    Returns:
        Floats, ``[n, 1, 28, 28]``.
    """
    shrink = bicubic(CANVAS, SIDE)
    out = torch.empty(len(left), 1, SIDE, SIDE)
    # In blocks: the canvases of 60,000 samples would take 300 MB.
    for rows in torch.arange(len(left)).split(4096):
        canvas = torch.zeros(len(rows), CANVAS, CANVAS)
        canvas[:, :SIDE, :SIDE] = images[left[rows]] / 255
        corner = canvas[:, SHIFT : SHIFT + SIDE, SHIFT : SHIFT + SIDE]
        torch.maximum(corner, images[right[rows]] / 255, out=corner)
        out[rows, 0] = shrink @ canvas @ shrink.T
    return out


def bicubic(before: int, after: int) -> Tensor:
    """Pillow's bicubic filter along one axis, as a matrix ``[after, before]``.

    Resizing is linear and works on one axis after the other, so the image of the identity is
    the matrix, and ``M @ image @ M.T`` resizes both axes.

    Args:
        before: The length of the axis.
        after: The length it is to have.
    """
    identity = Image.fromarray(np.eye(before, dtype=np.float32))
    resized = identity.resize((before, after), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(resized))
