"""CAGrad (Liu et al., NeurIPS 2021): near the mean gradient, good for the worst-off task."""

import math

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.rules.balancer import Row, Weighting
from lorpman.rules.solvers import divided_by_trace, min_norm, root_of_increasing


class CAGrad(Weighting):
    """``argmax_d min_i <gradient_i, d>`` within ``c |g_0|`` of the mean gradient ``g_0``.

    Heads get the mean loss.

    Args:
        c: How far from the mean gradient, as a share of its length; at least 0 and below 1.
        rescale: Divide by ``1 + c^2``, as the authors' code does.

    Raises:
        UsageError: If ``c`` is out of its range.
    """

    def __init__(self, c: float = 0.4, rescale: bool = True) -> None:
        super().__init__()
        if not 0 <= c < 1:
            raise UsageError(f"c must be at least 0 and below 1, got {c}")
        self.c = c
        self.rescale = rescale

    def weights(self, row: Row) -> Tensor:
        """The weights of the direction, rescaled if asked for, ``[m]``."""
        weights = cagrad_weights(row.gram, self.c)
        return weights / (1 + self.c**2) if self.rescale else weights

    def head_weights(self, weights: Tensor) -> Tensor:
        """``1 / m`` for every head, ``[m]``."""
        return torch.full_like(weights, 1 / len(weights))


def cagrad_weights(gram: Tensor, c: float) -> Tensor:
    """Weights ``[m]`` of the direction ``g_0 + s g_w``, before rescaling.

    For a given ``s``, ``w`` is the min-norm point of the gradients shifted by ``g_0 / s``, and
    the distance ``s |g_w|`` from ``g_0`` grows with ``s``: so one search in ``s`` is enough, and
    nothing is divided by ``|g_w|``, which vanishes at Pareto-stationary points.

    Args:
        gram: Inner products of the tasks' gradients, ``[m, m]``.
        c: See :class:`CAGrad`.

    >>> cagrad_weights(torch.eye(2), 0.5)
    tensor([0.7500, 0.7500], dtype=torch.float64)
    """
    K = divided_by_trace(gram)
    m = len(K)
    even = torch.full((m,), 1 / m, dtype=torch.float64)
    towards = K @ even
    radius = c * math.sqrt(max(float(even @ towards), 0.0))
    # Nothing but the mean gradient is allowed; and log(0) would fail below.
    if radius == 0:
        return even

    def worst_case(log_s: float) -> Tensor:
        """``w`` for a given ``s``: the inner products of ``g_i + g_0 / s`` decide it."""
        shift = math.exp(-log_s)
        cross = (towards[:, None] + towards) * shift
        return min_norm(K + cross + float(even @ towards) * shift**2)

    def excess(log_s: float) -> float:
        """Above 0 where ``s |g_w|`` is beyond the radius, in logarithms."""
        w = worst_case(log_s)
        return log_s + 0.5 * math.log(max(float(w @ K @ w), 1e-300)) - math.log(radius)

    # |g_w| is at most 1 for a scaled Gram matrix, so s is at least the radius; the other end is
    # where g_w has vanished for all practical purposes.
    log_s = root_of_increasing(excess, math.log(radius) - 1, math.log(radius) + 18)
    return even + math.exp(log_s) * worst_case(log_s)
