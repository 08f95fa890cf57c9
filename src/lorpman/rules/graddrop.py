"""GradDrop (Chen et al., NeurIPS 2020): for each number, only gradients of one sign get through."""

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.rules.balancer import Balancer
from lorpman.rules.base import Step
from lorpman.rules.task_gradients import GradientPairs, TaskGradients


class GradDrop(Balancer):
    """For each number, only gradients of one sign get through; then the mean over tasks.

    The positive ones are kept with probability ``1/2 (1 + sum / sum of sizes)``, else the
    negative ones.

    Args:
        leak: The share of the whole gradient that gets through anyway, from 0 to 1.

    Raises:
        UsageError: If ``leak`` is out of its range.
    """

    def __init__(self, leak: float = 0.0) -> None:
        super().__init__()
        if not 0 <= leak <= 1:
            raise UsageError(f"leak must be between 0 and 1, got {leak}")
        self.leak = leak

    def direct(self, gradients: TaskGradients, index: int, step: Step) -> GradientPairs:
        """The mean of what gets through; heads get the mean loss."""
        del index, step
        m = len(gradients.matrix)
        # Drawn on the CPU, so that a seed means the same on every device.
        uniform = torch.rand(gradients.matrix.shape[1]).to(gradients.matrix)
        kept = graddrop(gradients.matrix, uniform)
        direction = self.leak * gradients.matrix.sum(0) + (1 - self.leak) * kept
        return gradients.directed(direction / m, torch.full((m,), 1 / m))


def graddrop(matrix: Tensor, uniform: Tensor) -> Tensor:
    """Sum over tasks of what gets through.

    Args:
        matrix: The tasks' gradients, ``[m, P]``.
        uniform: A draw from 0 to 1 for each number, ``[P]``.

    Returns:
        ``[P]``.

    >>> matrix = torch.tensor([[3.0, 3.0], [-1.0, -1.0]])
    >>> graddrop(matrix, torch.tensor([0.7, 0.8]))  # positives are kept below 0.75
    tensor([ 3., -1.])
    """
    total, size = matrix.sum(0), matrix.abs().sum(0)
    # Where all gradients are zero, the purity is a half and what gets through is zero anyway.
    purity = 0.5 * (1 + total / size.clamp_min(torch.finfo(matrix.dtype).tiny))
    positive, negative = matrix.clamp_min(0).sum(0), matrix.clamp_max(0).sum(0)
    return torch.where(purity > uniform, positive, negative)
