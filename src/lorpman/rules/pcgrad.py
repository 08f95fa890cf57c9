"""PCGrad (Yu et al., NeurIPS 2020): gradient surgery."""

from typing import Literal

import torch
from torch import Tensor

from lorpman.rules.balancer import Row, Weighting

Reduction = Literal["sum", "mean"]


class PCGrad(Weighting):
    """Each task's gradient loses what points against another's, in a random order; then the sum.

    Heads get the gradient of their own losses.

    Args:
        reduction: "mean" divides by the number of tasks, as some codes do.
    """

    def __init__(self, reduction: Reduction = "sum") -> None:
        super().__init__()
        self.reduction: Reduction = reduction

    def weights(self, row: Row) -> Tensor:
        """The weights of the original gradients after surgery in a random order, ``[m]``."""
        m = len(row.gram)
        orders = torch.stack([torch.randperm(m) for _ in range(m)])
        return pcgrad_weights(row.gram, orders) / (m if self.reduction == "mean" else 1)

    def head_weights(self, weights: Tensor) -> Tensor:
        """1 for every head, or ``1 / m``: ``[m]``."""
        return torch.ones_like(weights) / (len(weights) if self.reduction == "mean" else 1)


def pcgrad_weights(gram: Tensor, orders: Tensor) -> Tensor:
    """Weights ``[m]`` of the original gradients in the sum of the projected ones.

    A projection takes away a multiple of an original gradient, so coefficients are enough.

    Args:
        gram: Inner products of the tasks' gradients, ``[m, m]``.
        orders: Row ``i`` is the order in which task ``i`` looks at the others, ``[m, m]``.

    >>> gram = torch.tensor([[1.0, -1.0], [-1.0, 2.0]])  # of (1, 0) and (-1, 1)
    >>> pcgrad_weights(gram, torch.tensor([[0, 1], [0, 1]]))
    tensor([2.0000, 1.5000], dtype=torch.float64)
    """
    K = gram.double().numpy()
    # Projected gradients are combinations of the original ones: their coefficients are enough.
    coefficients = torch.eye(len(K), dtype=torch.float64).numpy()
    for i, order in enumerate(orders.tolist()):
        projected = coefficients[i]
        for j in order:
            # Against the original gradient j, as published, not against what is left of it.
            dot = projected @ K[:, j]
            if j != i and dot < 0 and K[j, j] > 0:
                projected[j] -= dot / K[j, j]
    return torch.from_numpy(coefficients.sum(0))
