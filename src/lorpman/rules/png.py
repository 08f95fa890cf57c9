"""PNG (Ye and Liu, NeurIPS 2022): Pareto navigation, towards a criterion along the front."""

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import Row, Weighting, require_population
from lorpman.rules.solvers import divided_by_trace, min_norm, nonnegative_qp

# The smallest squared distance that the energy sees: it has a pole where members meet.
_CLOSEST = 1e-6


class PNG(Weighting):
    """The direction nearest to the gradient of a criterion that still lowers every loss.

    The criterion is the energy ``sum_ij |f_i - f_j|^-2``, which spreads the members over the
    front; a member that is Pareto-stationary follows the criterion alone. The criterion's
    gradient is shortened to the mean length of the tasks' gradients where it is longer. Members
    must start apart; their preferences are only names. Heads are weighted like their tasks, but
    never made worse.

    Args:
        descent: The share of the steepest common descent that must be kept, above 0, at most 1.
        tolerance: A member is Pareto-stationary where its steepest common descent is at most
            this share of the mean squared length of its gradients.

    Raises:
        UsageError: If ``descent`` is out of its range.
    """

    def __init__(self, descent: float = 0.5, tolerance: float = 0.1) -> None:
        super().__init__()
        if not 0 < descent <= 1:
            raise UsageError(f"descent must be above 0 and at most 1, got {descent}")
        self.descent = descent
        self.tolerance = tolerance

    def prepare(self, model: Manifold) -> None:
        """Check that there are members to keep apart.

        Raises:
            UsageError: If ``model`` is no Population of at least two.
        """
        require_population(self, model, at_least=2)

    def weights(self, row: Row) -> Tensor:
        """The weights of the direction along the front, ``[m]``."""
        criterion = energy_gradient(row.all_losses)[row.index]
        length = float((criterion @ row.gram @ criterion).clamp_min(0).sqrt())
        usual = float(row.gram.diagonal().clamp_min(0).sqrt().mean())
        # Members that nearly meet would otherwise push each other very far.
        criterion = criterion * min(1.0, usual / max(length, 1e-300))
        return png_weights(row.gram, criterion, self.descent, self.tolerance)

    def head_weights(self, weights: Tensor) -> Tensor:
        """The same weights without the negative ones, ``[m]``."""
        # A head could worsen its own loss without end, at no cost to the other tasks.
        return weights.clamp_min(0)


def png_weights(
    gram: Tensor, criterion: Tensor, descent: float = 0.5, tolerance: float = 0.1
) -> Tensor:
    """Weights ``[m]`` of ``argmin |v - grad F|^2`` with ``<g_i, v> >= phi`` for all tasks.

    ``phi`` is ``descent`` times the squared length of the steepest common descent.

    Args:
        gram: Inner products of the tasks' gradients, ``[m, m]``.
        criterion: The derivative ``c`` of F in the losses, so that ``grad F = sum_i c_i g_i``:
            ``[m]``.
        descent: See :class:`PNG`.
        tolerance: See :class:`PNG`.

    >>> png_weights(torch.eye(2), torch.tensor([-1.0, 0.0])).round(decimals=6)
    tensor([0.2500, 0.2500], dtype=torch.float64)
    """
    K, c = divided_by_trace(gram), criterion.detach().to("cpu", torch.float64)
    shortest = min_norm(K)
    g = float(shortest @ K @ shortest)
    # Hardly any direction lowers all losses here: only the criterion counts.
    if g <= tolerance * float(K.diagonal().mean()):
        return c
    return c + nonnegative_qp(K, descent * g - K @ c)


def energy_gradient(losses: Tensor) -> Tensor:
    """The derivative of ``sum_{i != j} |f_i - f_j|^-2`` in the losses.

    Args:
        losses: The members' losses ``f``, ``[n, m]``.

    Returns:
        ``[n, m]``.
    """
    f = losses.detach().to("cpu", torch.float64).requires_grad_()
    squared = (f[:, None] - f[None, :]).square().sum(-1)
    others = ~torch.eye(len(f), dtype=torch.bool)
    energy = (1 / squared[others].clamp_min(_CLOSEST)).sum()
    return torch.autograd.grad(energy, f)[0]
