"""IMTL (Liu et al., ICLR 2021): impartial losses (L), impartial gradients (G), or both."""

import torch
from torch import Tensor, nn

from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import Row, Weighting
from lorpman.rules.base import Step
from lorpman.rules.objective import Term
from lorpman.rules.rule_state import ensure_parameter


class ImpartialLosses(Term):
    """IMTL-L: ``sum_i exp(s_i) f_i - s_i`` with learned ``s``: scaled losses tend to 1."""

    scales: nn.Parameter
    """``s``, ``[m]``."""

    def prepare(self, model: Manifold) -> None:
        """Make a scale for each task."""
        ensure_parameter(self, "scales", torch.zeros(model.num_tasks))

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """The scaled losses ``[b, m]`` less the scales, summed: ``[]``."""
        del alphas, model
        return (self.scales.exp() * losses - self.scales).sum()


class IMTL(Weighting):
    """IMTL-G: a direction whose projections on all the tasks' gradients are equal.

    Weights sum to one and may be negative; heads, and the scales, get the plain sum of (scaled)
    losses.

    Args:
        scale_losses: The whole IMTL: G applied to L's scaled losses.
    """

    scales: nn.Parameter
    """``s`` of :class:`ImpartialLosses`, ``[m]``; only with ``scale_losses``."""

    def __init__(self, scale_losses: bool = True) -> None:
        super().__init__()
        self.scale_losses = scale_losses

    def prepare(self, model: Manifold) -> None:
        """Make a scale for each task, if losses are scaled.

        Raises:
            UsageError: If ``model`` is continuous.
        """
        super().prepare(model)
        if self.scale_losses:
            ensure_parameter(self, "scales", torch.zeros(model.num_tasks))

    def backward(self, step: Step) -> None:
        """Leave the impartial gradient, and that of the scales."""
        super().backward(step)
        if self.scale_losses:
            # Losses detached: their gradients are already in place, and balanced.
            step.backward((self.scales.exp() * step.losses.detach() - self.scales).sum())

    def weights(self, row: Row) -> Tensor:
        """Impartial weights of the scaled losses' gradients, ``[m]``."""
        factors = self._factors(len(row.gram))
        return factors * impartial_weights(row.gram * factors[:, None] * factors)

    def head_weights(self, weights: Tensor) -> Tensor:
        """The factors of the scaled losses, ``[m]``."""
        return self._factors(len(weights))

    def _factors(self, m: int) -> Tensor:
        if not self.scale_losses:
            return torch.ones(m, dtype=torch.float64)
        return self.scales.detach().exp().to("cpu", torch.float64)


def impartial_weights(gram: Tensor) -> Tensor:
    """``w`` with sum 1 and ``<sum_j w_j g_j, g_i / |g_i|>`` equal for all i, ``[m]``.

    With cosines ``C`` and lengths ``n``: ``C (n w) = const``. Symmetric in the tasks, unlike the
    published form, which singles out the first; they agree where the answer is unique.

    Args:
        gram: Inner products of the tasks' gradients, ``[m, m]``.

    >>> impartial_weights(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
    tensor([0.3333, 0.6667], dtype=torch.float64)
    """
    gram = gram.double()
    lengths = gram.diagonal().clamp_min(0).sqrt()
    # A task without a gradient: 0 / 1 instead of 0 / 0.
    lengths = torch.where(lengths > 0, lengths, 1.0)
    cosines = gram / lengths[:, None] / lengths
    even = torch.ones(len(gram), dtype=torch.float64)
    # A pseudo-inverse, since parallel gradients make the cosines singular.
    solved = (torch.linalg.pinv(cosines, rtol=1e-8, hermitian=True) @ even) / lengths
    # Opposite gradients have no such direction; equal lengths then cancel, as for two tasks.
    if solved.sum().abs() <= 1e-6 * solved.abs().sum():
        solved = 1 / lengths
    return solved / solved.sum()
