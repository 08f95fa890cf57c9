"""CAGrad (Liu et al., NeurIPS 2021): near the mean gradient, good for the worst-off task."""

import math

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.rules.balancer import Row, Weighting
from lorpman.rules.solvers import bisect_increasing, min_norm, scaled


class CAGrad(Weighting):
    """``argmax_d min_i <gradient_i, d>`` within ``c |g_0|`` of the mean gradient ``g_0``.

    ``rescale`` divides by ``1 + c^2``, as the authors' code does. Heads get the mean loss.
    """

    def __init__(self, c: float = 0.4, rescale: bool = True) -> None:
        super().__init__()
        if not 0 <= c < 1:
            raise UsageError(f"c must be at least 0 and below 1, got {c}")
        self.c = c
        self.rescale = rescale

    def weights(self, row: Row) -> Tensor:
        weights = cagrad_weights(row.gram, self.c)
        return weights / (1 + self.c**2) if self.rescale else weights

    def head_weights(self, weights: Tensor) -> Tensor:
        return torch.full_like(weights, 1 / len(weights))


def cagrad_weights(gram: Tensor, c: float) -> Tensor:
    """Weights ``[m]`` of the direction ``g_0 + s g_w``, before rescaling.

    For a given ``s``, ``w`` is the min-norm point of the gradients shifted by ``g_0 / s``, and
    the distance ``s |g_w|`` from ``g_0`` grows with ``s``: so one search in ``s`` is enough, and
    nothing is divided by ``|g_w|``, which vanishes at Pareto-stationary points.

    >>> cagrad_weights(torch.eye(2), 0.5)
    tensor([0.7500, 0.7500], dtype=torch.float64)
    """
    K = scaled(gram)
    m = len(K)
    even = torch.full((m,), 1 / m, dtype=torch.float64)
    towards = K @ even
    radius = c * math.sqrt(max(float(even @ towards), 0.0))
    if radius == 0:
        return even

    def inner(log_s: float) -> Tensor:
        shift = math.exp(-log_s)
        cross = (towards[:, None] + towards) * shift
        return min_norm(K + cross + float(even @ towards) * shift**2)

    def excess(log_s: float) -> float:
        w = inner(log_s)
        return log_s + 0.5 * math.log(max(float(w @ K @ w), 1e-300)) - math.log(radius)

    log_s = bisect_increasing(excess, math.log(radius) - 1, math.log(radius) + 18)
    return even + math.exp(log_s) * inner(log_s)
