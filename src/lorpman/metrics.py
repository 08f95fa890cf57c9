"""Losses and scores of the paper's tasks; scores add up sufficient statistics over batches.

A mean of per-batch means is wrong when the last batch is smaller, or when batches hold different
numbers of valid pixels. A ``Score`` therefore returns statistics that are summed over batches,
and computes its value once, from the total.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional

from lorpman.errors import UsageError, check_kind

Measure = Callable[[Tensor, Tensor], Tensor]
"""``(output, target)`` to the mean of a batch ``[]``, or to a value per sample ``[n]``."""


@runtime_checkable
class Score(Protocol):
    """A number measured over a whole split, from statistics that add up over its batches."""

    def statistics(self, output: Tensor, target: Tensor) -> Tensor:
        """One batch's contribution, a tensor of a fixed shape.

        Args:
            output: What the network gave for the task.
            target: What is true.
        """

    def value(self, total: Tensor) -> Tensor:
        """The score ``[]`` from the sum of all batches' statistics.

        Args:
            total: The sum of what :meth:`statistics` gave for every batch.
        """


def as_score(score: Score | Measure) -> Score:
    """``score`` itself, or the mean over samples of a plain function ``(output, target)``.

    Args:
        score: What a task was given.

    Raises:
        UsageError: If it is neither.
    """
    if isinstance(score, Score):
        return score
    if callable(score):
        return Mean(score)
    raise UsageError(
        f"a score must be a Score or a function (output, target) -> tensor, got {score!r}"
    )


class Mean:
    """The mean over samples of ``function(output, target)``.

    The function returns one value per sample ``[n]`` or the batch's mean ``[]``; a mean is
    weighted by ``len(target)``, so that a smaller last batch counts for less.

    Args:
        function: ``(output, target)`` to ``[n]`` or ``[]``.

    >>> score = Mean(accuracy)
    >>> logits = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 0.0]])
    >>> total = score.statistics(logits[:2], torch.tensor([0, 1]))
    >>> total += score.statistics(logits[2:], torch.tensor([1]))
    >>> round(score.value(total).item(), 3)
    0.667
    """

    def __init__(self, function: Measure) -> None:
        self.function = function

    def statistics(self, output: Tensor, target: Tensor) -> Tensor:
        """The sum over samples and their number, ``[2]``.

        Args:
            output: What the network gave for the task, for n samples.
            target: What is true of them; its length is n.

        Raises:
            UsageError: If the function returns more than one value per sample.
        """
        result = _wide(torch.as_tensor(self.function(output, target)))
        if result.dim() > 1:
            raise UsageError(
                "a score must return one value per batch or per sample, "
                f"got shape {tuple(result.shape)}; average over the other dimensions"
            )
        count = result.new_tensor(float(len(target)))
        return torch.stack([result.sum() if result.dim() else result * count, count])

    def value(self, total: Tensor) -> Tensor:
        """The sum over the number: the mean, ``[]``.

        Args:
            total: The sum over batches, ``[2]``.
        """
        return total[0] / total[1]


def accuracy(output: Tensor, target: Tensor) -> Tensor:
    """1 where the predicted class is the target, else 0.

    Args:
        output: Logits ``[n, classes]``; or binary ones, ``[n]`` or ``[n, 1]``, which predict class
            1 where they are above 0.
        target: The true classes ``[n]``.

    Returns:
        One value per sample, ``[n]``.

    Raises:
        UsageError: If the output has not one row per target.

    >>> accuracy(torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    tensor([1., 0.])
    >>> accuracy(torch.tensor([-0.3, 0.7]), torch.tensor([0, 1]))
    tensor([1., 1.])
    """
    for name, value in (("output", output), ("target", target)):
        check_kind(name, value, Tensor, "a tensor")
    classes = output.shape[1:2].numel() if output.dim() < 3 else output.shape[1]
    if output.dim() == 0 or output.numel() != target.numel() * classes:
        raise UsageError(
            f"output must hold a row per target, got {list(output.shape)} for {list(target.shape)}"
        )
    if output.dim() == 1 or output.shape[1] == 1:
        predicted = (output.reshape(len(output)) > 0).to(target.dtype)
    else:
        predicted = output.argmax(1)
    return (predicted == target.reshape(predicted.shape)).to(torch.float32)


def huber(output: Tensor, target: Tensor) -> Tensor:
    """The Huber loss (delta 1); UTKFace's age is trained and scored with it.

    Args:
        output: Predicted numbers, ``[n]`` or ``[n, 1]``.
        target: The true ones, ``[n]``.

    Returns:
        The mean, ``[]``.

    Raises:
        UsageError: If the shapes differ by more than dimensions of size 1.
    """
    return functional.huber_loss(_like(output, target), target)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy over the targets that are not -1 (void).

    Args:
        output: Logits ``[n, classes, ...]``.
        target: Classes ``[n, ...]``.

    Returns:
        The mean, ``[]``; 0 for a batch that is void throughout.
    """
    # torch's own mean over no target at all would be NaN.
    valid = (target != -1).sum().clamp(min=1)
    return functional.cross_entropy(output, target, ignore_index=-1, reduction="sum") / valid


def depth_l1(output: Tensor, target: Tensor) -> Tensor:
    """The absolute error over pixels of known (non-zero) depth.

    Args:
        output: Predicted depths ``[n, 1, h, w]``.
        target: True ones, ``[n, 1, h, w]`` or ``[n, h, w]``; 0 where unknown.

    Returns:
        The mean, ``[]``; 0 if no depth is known.

    Raises:
        UsageError: If the shapes differ by more than dimensions of size 1.
    """
    known = target != 0
    error = (_like(output, target) - target).abs()
    return torch.where(known, error, 0.0).sum() / known.sum().clamp(min=1)


class MeanIoU:
    """Intersection over union, averaged over classes, from one confusion matrix of the split.

    ``[n, classes, ...]`` against ``[n, ...]``. Classes that are neither present nor predicted
    anywhere do not count.

    Args:
        num_classes: How many classes there are.
        ignore: Targets equal to this do not count.
    """

    def __init__(self, num_classes: int, ignore: int = -1) -> None:
        self.num_classes = num_classes
        self.ignore = ignore

    def statistics(self, output: Tensor, target: Tensor) -> Tensor:
        """The batch's confusion matrix ``[classes, classes]``: rows true, columns predicted.

        Args:
            output: Logits ``[n, classes, ...]``.
            target: The true classes ``[n, ...]``.

        Raises:
            UsageError: If the output has other classes, or a target is none of them.
        """
        k = self.num_classes
        if output.shape[1] != k:
            raise UsageError(f"MeanIoU({k}) needs outputs of {k} classes, got {output.shape[1]}")
        counted = target != self.ignore
        true, predicted = target[counted], output.argmax(1)[counted]
        _check_range(true, k)
        # One number for each pair of classes, so that one count makes the whole matrix.
        return torch.bincount(true.long() * k + predicted, minlength=k * k).reshape(k, k)

    def value(self, total: Tensor) -> Tensor:
        """``mean_c M_cc / (row_c + column_c - M_cc)``, ``[]``.

        Args:
            total: The confusion matrix ``M [classes, classes]`` of the split.
        """
        matrix = _wide(total)
        hit = matrix.diagonal()
        union = matrix.sum(0) + matrix.sum(1) - hit
        return (hit[union > 0] / union[union > 0]).mean()


class PixelAccuracy:
    """The share of pixels with the right class: ``[n, classes, ...]`` against ``[n, ...]``.

    Args:
        ignore: Targets equal to this do not count.
    """

    def __init__(self, ignore: int = -1) -> None:
        self.ignore = ignore

    def statistics(self, output: Tensor, target: Tensor) -> Tensor:
        """Right pixels and counted pixels, ``[2]``.

        Args:
            output: Logits ``[n, classes, ...]``.
            target: The true classes ``[n, ...]``.
        """
        counted = target != self.ignore
        right = (output.argmax(1) == target) & counted
        return torch.stack([right.sum(), counted.sum()])

    def value(self, total: Tensor) -> Tensor:
        """Right pixels over counted ones, ``[]``.

        Args:
            total: The sum over batches, ``[2]``.
        """
        return _wide(total[0]) / total[1]


class AbsoluteDepthError:
    """``|p - t|``, averaged over all pixels of the split whose depth is known (not 0).

    The published tables average per-batch means instead, so there a pixel of a sparse or small
    batch weighs more; compare with them knowing that.
    """

    def statistics(self, output: Tensor, target: Tensor) -> Tensor:
        """The summed error and the number of known pixels, ``[2]``.

        Args:
            output: Predicted depths ``[n, 1, h, w]``.
            target: True ones, ``[n, 1, h, w]`` or ``[n, h, w]``; 0 where unknown.

        Raises:
            UsageError: If the shapes differ by more than dimensions of size 1.
        """
        return _depth_statistics(output, target, relative=False)

    def value(self, total: Tensor) -> Tensor:
        """The sum over the number: the mean error, ``[]``.

        Args:
            total: The sum over batches, ``[2]``.
        """
        return total[0] / total[1]


class RelativeDepthError:
    """``|p - t| / t``, averaged over all pixels of the split whose depth is known (not 0).

    A ratio, not a percentage. As for ``AbsoluteDepthError``, the tables average batches.
    """

    def statistics(self, output: Tensor, target: Tensor) -> Tensor:
        """The summed error and the number of known pixels, ``[2]``.

        Args:
            output: Predicted depths ``[n, 1, h, w]``.
            target: True ones, ``[n, 1, h, w]`` or ``[n, h, w]``; 0 where unknown.

        Raises:
            UsageError: If the shapes differ by more than dimensions of size 1.
        """
        return _depth_statistics(output, target, relative=True)

    def value(self, total: Tensor) -> Tensor:
        """The sum over the number: the mean error, ``[]``.

        Args:
            total: The sum over batches, ``[2]``.
        """
        return total[0] / total[1]


def _depth_statistics(output: Tensor, target: Tensor, relative: bool) -> Tensor:
    known = target != 0
    true = target[known]
    error = (_like(output, target)[known] - true).abs()
    error = _wide(error / true.abs() if relative else error)
    return torch.stack([error.sum(), known.sum().to(error.dtype)])


def _like(output: Tensor, target: Tensor) -> Tensor:
    """``output`` in the target's shape, from which it may differ by dimensions of size 1 only."""
    if [n for n in output.shape if n != 1] != [n for n in target.shape if n != 1]:
        raise UsageError(
            f"output and target must have one shape, got {tuple(output.shape)} "
            f"and {tuple(target.shape)}"
        )
    return output.reshape(target.shape)


def _check_range(labels: Tensor, num_classes: int) -> None:
    if labels.numel() and (labels.min() < 0 or labels.max() >= num_classes):
        raise UsageError(
            f"labels must lie in 0..{num_classes - 1}, "
            f"found {int(labels.min())}..{int(labels.max())}"
        )


def _wide(x: Tensor) -> Tensor:
    """``x`` in the widest float of its device: float32 sums lose samples beyond 2^24."""
    return x.to(torch.float32 if x.device.type == "mps" else torch.float64)
