"""Two overlapping handwritten digits, made from the digits that come with scikit-learn."""

import torch
from torch import Tensor

from lorpman.lab.datasets.splits import Arrays, Splits

_SIDE = 12
_SHIFT = 4
_SEED = 0
_SIZES = {"train": 6000, "validation": 1500, "test": 2000}


def load() -> Splits:
    """Images ``[n, 1, 12, 12]`` in [0, 1]; targets: the upper left and the lower right digit.

    The 1,797 real digits (8 x 8) are first split 60/20/20, so no digit image of one split
    occurs in another; then pairs are drawn within each split and overlaid by their maximum.

    Returns:
        The three splits, the same ones every time.
    """
    # Imported here: it is slow, and only this dataset needs it.
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.from_numpy(digits.images).float() / 16
    labels = torch.from_numpy(digits.target).long()
    generator = torch.Generator().manual_seed(_SEED)
    order = torch.randperm(len(images), generator=generator)
    cuts = [int(0.6 * len(order)), int(0.2 * len(order))]
    # Split before pairs are made: no digit of a test image is seen in training.
    parts = order.split([*cuts, len(order) - sum(cuts)])
    return Splits(
        *(
            _pairs(images[part], labels[part], size, generator)
            for part, size in zip(parts, _SIZES.values(), strict=True)
        )
    )


def _pairs(images: Tensor, labels: Tensor, size: int, generator: torch.Generator) -> Arrays:
    left = torch.randint(len(images), (size,), generator=generator)
    # An offset of at least one: the two digits are never the same image.
    offset = torch.randint(1, len(images), (size,), generator=generator)
    right = (left + offset) % len(images)
    canvas = torch.zeros(size, 1, _SIDE, _SIDE)
    canvas[:, 0, :8, :8] = images[left]
    lower = canvas[:, 0, _SHIFT:, _SHIFT:]
    canvas[:, 0, _SHIFT:, _SHIFT:] = torch.maximum(lower, images[right])
    return Arrays(canvas, [labels[left], labels[right]])
