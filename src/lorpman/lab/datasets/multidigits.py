"""Two or three overlapping handwritten digits, made from those that come with scikit-learn."""

import torch
from torch import Tensor

from lorpman.lab.datasets.splits import Arrays, Batch, Splits

_DIGIT = 8
_SHIFT = 4
_SEED = 0
_SIZES = {"train": 6000, "validation": 1500, "test": 2000}


def load(digits: int = 2, fresh_pairs: bool = False) -> Splits:
    """Images ``[n, 1, s, s]`` in [0, 1], of side ``4 + 4 * digits``; targets: one per digit.

    The 1,797 real digits (8 x 8) are first split 60/20/20, so no digit image of one split
    occurs in another; then digits are drawn within each split and overlaid by their maximum, each
    four pixels below and right of the one before it. The first is the upper left one.

    Args:
        digits: On each picture.
        fresh_pairs: Draw the training pictures anew in every epoch, from the same digits.

    Returns:
        The three splits, the same ones every time.
    """
    # Imported here: it is slow, and only this dataset needs it.
    from sklearn.datasets import load_digits

    loaded = load_digits()
    images = torch.from_numpy(loaded.images).float() / 16
    labels = torch.from_numpy(loaded.target).long()
    generator = torch.Generator().manual_seed(_SEED)
    order = torch.randperm(len(images), generator=generator)
    cuts = [int(0.6 * len(order)), int(0.2 * len(order))]
    # Split before pairs are made: no digit of a test image is seen in training.
    parts = order.split([*cuts, len(order) - sum(cuts)])
    splits = [
        Arrays(*_pictures(images[part], labels[part], _drawn(len(part), size, digits, generator)))
        for part, size in zip(parts, _SIZES.values(), strict=True)
    ]
    if fresh_pairs:
        transform = FreshDigits(images[parts[0]], labels[parts[0]], digits)
        splits[0] = Arrays(torch.arange(_SIZES["train"]), [], transform=transform)
    return Splits(*splits)


class FreshDigits:
    """A transform: row numbers to as many pictures, drawn anew whenever they are asked for.

    Args:
        images: The digits, ``[k, 8, 8]``.
        labels: What they show, ``[k]``.
        digits: How many are on a picture.
    """

    def __init__(self, images: Tensor, labels: Tensor, digits: int) -> None:
        self.images, self.labels, self.digits = images, labels, digits
        self.generator = torch.Generator().manual_seed(_SEED)
        """Checkpoints keep its state."""

    def __call__(self, x: Tensor, targets: list[Tensor]) -> Batch:  # noqa: ARG002
        available = len(self.images)
        # One shift for the whole batch: processes that share it never make the same picture.
        first = (x + torch.randint(available, (), generator=self.generator)) % available
        drawn = _with_others(first, available, self.digits, self.generator)
        return _pictures(self.images, self.labels, drawn)


def _drawn(available: int, size: int, digits: int, generator: torch.Generator) -> list[Tensor]:
    """For every place on a picture, which digit stands there, ``[size]``."""
    first = torch.randint(available, (size,), generator=generator)
    return _with_others(first, available, digits, generator)


def _with_others(
    first: Tensor, available: int, digits: int, generator: torch.Generator
) -> list[Tensor]:
    drawn = [first]
    while len(drawn) < digits:
        # An offset of at least one: two neighbours are never the same image.
        offset = torch.randint(1, available, first.shape, generator=generator)
        drawn.append((drawn[-1] + offset) % available)
    return drawn


def _pictures(images: Tensor, labels: Tensor, drawn: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Digits laid over each other, and what they show."""
    side = _DIGIT + _SHIFT * (len(drawn) - 1)
    canvas = torch.zeros(len(drawn[0]), 1, side, side)
    for place, chosen in enumerate(drawn):
        start = place * _SHIFT
        part = canvas[:, 0, start : start + _DIGIT, start : start + _DIGIT]
        torch.maximum(part, images[chosen], out=part)
    return canvas, [labels[chosen] for chosen in drawn]
