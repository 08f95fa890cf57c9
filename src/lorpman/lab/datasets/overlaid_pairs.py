"""MultiMNIST and its kin: two digits (or garments) laid over each other, two labels.

Each sample takes two different images, uniformly at random: both of one original set, or the left
one of MNIST and the right one of Fashion-MNIST. The left one lies at rows and columns 0..27 of an
empty 36x36 canvas, the right one at 6..33; where they overlap, the brighter pixel wins. The canvas
is then shrunk to 28x28 as Pillow's bicubic filter does for an image of floats, so values leave
0..1 slightly; no mean or deviation is removed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
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
from lorpman.lab.datasets.splits import Arrays, Batch, Splits

CANVAS = 36
SIDE = 28
SHIFT = 6
SOURCES = {
    "mnist": ("multimnist", ("mnist",)),
    "fashion": ("multifashion", ("fashion",)),
    "mnist+fashion": ("multifashion-mnist", ("mnist", "fashion")),
}
"""For every source, its problem, and the folders of the left and the right images; one for both."""
# To be raised when the same files would give other tensors: caches of the old number are not used.
VERSION = 1


@dataclass(frozen=True)
class Originals:
    """What pairs are made of: images ``[k, 28, 28]`` in bytes, and their labels ``[k]``."""

    left: Tensor
    left_labels: Tensor
    right: Tensor
    right_labels: Tensor
    one_set: bool
    """Whether left and right images are the same ones."""

    def laid_over(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Pairs of the originals, laid over each other: pictures, left labels, right labels.

        Args:
            left: The indices of the left ones, ``[n]``.
            right: Those of the right ones, ``[n]``.
        """
        pictures = overlay(self.left, left, right, self.right)
        return pictures, self.left_labels[left], self.right_labels[right]


def load(
    root: Path,
    source: Literal["mnist", "fashion", "mnist+fashion"] = "mnist",
    sizes: tuple[int, int, int] = (50_000, 10_000, 10_000),
    seed: int = 0,
    fresh_pairs: bool = False,
) -> Splits:
    """Inputs ``[n, 1, 28, 28]``, targets left ``[n]`` and right ``[n]``.

    Args:
        root: The data directory; the files are in its folders ``mnist`` and ``fashion``.
        source: Which original set; ``mnist+fashion``: a digit left, a garment right.
        sizes: Training, validation and test samples. The pairs of the first two come from the
            original training set and are drawn independently, so cutting them is a random split.
        seed: Draws the pairs; the default is the one that all results use.
        fresh_pairs: Pair the training images anew in every epoch, as many as ``sizes`` says, so
            that pairs cannot be memorised. Validation and test pairs stay as they are.

    Returns:
        The three splits.

    Raises:
        UsageError: If a file is missing or damaged, or a size is below 1.
    """
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    if min(sizes) < 1:
        raise UsageError(f"sizes must be three positive numbers, got {sizes}")
    problem, folders = SOURCES[source]
    names = [f"{p}-{k}" for p in ("train", "t10k") for k in ("images-idx3", "labels-idx1")]
    paths = [
        [idx_format.find(Path(root) / folder, f"{name}-ubyte", problem) for name in names]
        for folder in folders
    ]
    options = {"sizes": list(sizes), "seed": seed}
    checksum = content_checksum([path for files in paths for path in files])
    preparation = Preparation(problem, VERSION, checksum, options)
    tensors = cached(preparation, lambda: _prepare(paths, sizes, seed))
    train, validation, test = (
        Arrays(tensors[f"{name}.x"], [tensors[f"{name}.left"], tensors[f"{name}.right"]])
        for name in ("train", "validation", "test")
    )
    if fresh_pairs:
        transform = FreshPairs(_originals(paths, "train"), seed)
        train = Arrays(torch.arange(sizes[0]), [], transform=transform)
    return Splits(train, validation, test)


class FreshPairs:
    """A transform: row numbers to as many pairs, drawn anew whenever they are asked for.

    Row ``j`` of a batch has the left image ``j + shift``, with one shift for the whole batch, so
    that processes that share a batch never make the same pair of it; the right one is drawn for
    every row. Both are uniform over all images.

    Args:
        originals: What to pair.
        seed: Of the generator, whose state checkpoints keep.
    """

    def __init__(self, originals: Originals, seed: int) -> None:
        self.originals = originals
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, x: Tensor, targets: list[Tensor]) -> Batch:  # noqa: ARG002
        lefts, rights = len(self.originals.left), len(self.originals.right)
        left = (x + torch.randint(lefts, (), generator=self.generator)) % lefts
        # Of one set, an offset of at least one: the two are never the same image.
        least = int(self.originals.one_set)
        offset = torch.randint(least, rights, x.shape, generator=self.generator)
        pictures, *labels = self.originals.laid_over(left, (left + offset) % rights)
        return pictures, labels


def _prepare(paths: Sequence[Sequence[Path]], sizes: tuple[int, int, int], seed: int) -> Tensors:
    rng = np.random.default_rng(seed)
    train, test = _originals(paths, "train"), _originals(paths, "test")
    out = {}
    for name, originals, n in zip(
        ("train", "validation", "test"), (train, train, test), sizes, strict=True
    ):
        rights = None if originals.one_set else len(originals.right)
        left, right = pairs(len(originals.left), n, rng, rights)
        made = originals.laid_over(left, right)
        out[f"{name}.x"], out[f"{name}.left"], out[f"{name}.right"] = made
    return out


def _originals(paths: Sequence[Sequence[Path]], half: Literal["train", "test"]) -> Originals:
    """What the files of one set or of two hold: each has images and labels of both halves."""
    first = 0 if half == "train" else 2
    sets = [_read(files[first], files[first + 1]) for files in paths]
    return Originals(*sets[0], *sets[-1], one_set=len(sets) == 1)


def _read(images: Path, labels: Path) -> tuple[Tensor, Tensor]:
    x, y = idx_format.read(images, 3), idx_format.read(labels, 1).long()
    if x.shape[1:] != (SIDE, SIDE):
        raise damaged_file(images, f"holds images of {tuple(x.shape[1:])}, expected (28, 28)")
    if len(x) != len(y) or len(x) < 2:
        raise damaged_file(labels, f"holds {len(y)} labels for {len(x)} images")
    if y.max() > 9:
        raise damaged_file(labels, f"holds the label {int(y.max())}, expected 0..9")
    return x, y


def pairs(
    available: int, n: int, rng: np.random.Generator, others: int | None = None
) -> tuple[Tensor, Tensor]:
    """Draw pairs of two different images, uniformly.

    Args:
        available: How many images there are.
        n: How many pairs to draw.
        rng: Draws them.
        others: How many there are for the right, where those are a set of their own.

    Returns:
        The indices of the left and of the right images, ``[n]`` each.
    """
    left = rng.integers(0, available, n)
    if others is not None:
        return torch.from_numpy(left), torch.from_numpy(rng.integers(0, others, n))
    # An offset of at least one: the two are never the same image.
    right = (left + rng.integers(1, available, n)) % available
    return torch.from_numpy(left), torch.from_numpy(right)


def overlay(
    images: Tensor, left: Tensor, right: Tensor, right_images: Tensor | None = None
) -> Tensor:
    """Lay pairs of images over each other.

    Args:
        images: Bytes, ``[k, 28, 28]``.
        left: Which image lies at the upper left, ``[n]``.
        right: Which lies at the lower right, ``[n]``.
        right_images: Where those are others, ``[l, 28, 28]``.

    Returns:
        Floats, ``[n, 1, 28, 28]``.
    """
    lower = images if right_images is None else right_images
    shrink = bicubic(CANVAS, SIDE)
    out = torch.empty(len(left), 1, SIDE, SIDE)
    # In blocks: the canvases of 60,000 samples would take 300 MB.
    for rows in torch.arange(len(left)).split(4096):
        canvas = torch.zeros(len(rows), CANVAS, CANVAS)
        canvas[:, :SIDE, :SIDE] = images[left[rows]] / 255
        corner = canvas[:, SHIFT : SHIFT + SIDE, SHIFT : SHIFT + SIDE]
        torch.maximum(corner, lower[right[rows]] / 255, out=corner)
        out[rows, 0] = shrink @ canvas @ shrink.T
    return out


@cache
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
