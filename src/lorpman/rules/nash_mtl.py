"""Nash-MTL (Navon et al., ICML 2022): the tasks bargain over the direction."""

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import Row, Weighting
from lorpman.rules.base import Step
from lorpman.rules.rule_state import ensure_buffer
from lorpman.rules.solvers import SolverFailed
from lorpman.rules.task_gradients import GradientPairs, TaskGradients

# Far below the cosines that it is added to, and far above their rounding.
_RIDGE = 1e-9


class NashMTL(Weighting):
    """``K w = 1 / w``: the Nash bargaining solution, indifferent to the scales of the losses.

    When weights are fresh, the shared gradient has length ``sqrt(m)``. Heads are weighted like
    their tasks, at full length.

    Args:
        update_every: How many steps weights are used before they are found anew.
        max_norm: The shared gradient is shortened to this length, 1 in the authors' code; None
            leaves it.

    Raises:
        UsageError: If ``update_every`` is below 1.
    """

    kept: Tensor
    """The weights of every network since its last update, ``[b, m]``."""
    steps: Tensor
    """How many steps every network has made, ``[b]``."""

    def __init__(self, update_every: int = 1, max_norm: float | None = 1.0) -> None:
        super().__init__()
        if update_every < 1:
            raise UsageError(f"update_every must be at least 1, got {update_every}")
        self.update_every = update_every
        self.max_norm = max_norm

    def prepare(self, model: Manifold) -> None:
        """Make room for the weights of every network.

        Raises:
            UsageError: If ``model`` is continuous.
        """
        super().prepare(model)
        rows = len(model.preferences())
        ensure_buffer(self, "kept", torch.ones(rows, model.num_tasks, dtype=torch.float64))
        ensure_buffer(self, "steps", torch.zeros(rows, dtype=torch.long))

    def direct(self, gradients: TaskGradients, index: int, step: Step) -> GradientPairs:
        """The bargain's gradients, the shared ones shortened if they are too long."""
        row = Row.of(gradients, index, step)
        weights = self.weights(row)
        length = float((weights @ row.gram @ weights).clamp_min(0).sqrt())
        factor = 1.0
        if self.max_norm is not None and length > self.max_norm:
            factor = self.max_norm / length
        # Heads belong to one task each; only what tasks share is shortened.
        return gradients.weighted(factor * weights, weights)

    def weights(self, row: Row) -> Tensor:
        """The bargain, or what was kept of it since the last update, ``[m]``."""
        if self.steps[row.index] % self.update_every == 0:
            self.kept[row.index] = nash_weights(row.gram).to(self.kept)
        self.steps[row.index] += 1
        return self.kept[row.index].cpu()


def nash_weights(gram: Tensor) -> Tensor:
    """``w > 0`` with ``w_i (K w)_i = 1`` for all i, ``[m]``.

    The minimum of ``1/2 w^T K w - sum ln w``, by damped Newton on the cosines (lengths only
    rescale the answer), so that no solver can fail silently. A tiny ridge keeps the weights
    finite at Pareto-stationary points, where the bargain has no solution.

    Args:
        gram: ``K``, inner products of the tasks' gradients, ``[m, m]``.

    Raises:
        SolverFailed: If the answer is no bargain.

    >>> nash_weights(torch.tensor([[4.0, 0.0], [0.0, 1.0]])).round(decimals=6)
    tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    gram = gram.double()
    lengths = gram.diagonal().clamp_min(0).sqrt()
    # A task without a gradient has no say; its row of zeros must not become NaN.
    lengths = torch.where(lengths > 0, lengths, 1.0)
    C = gram / lengths[:, None] / lengths
    C = C + _RIDGE * torch.eye(len(C), dtype=torch.float64)
    w = torch.ones(len(C), dtype=torch.float64)
    for _ in range(500):
        slope = C @ w - 1 / w
        move = torch.linalg.solve(C + torch.diag(w**-2), slope)
        decrement = float((slope @ move).clamp_min(0).sqrt())
        # The objective is self-concordant: this step stays positive and always descends.
        w = w - move / (1 + decrement) if decrement > 0.25 else w - move
        if decrement < 1e-11:
            break
    residual = float((w * (C @ w) - 1).abs().max())
    if not (residual < 1e-5 and bool((w > 0).all())):
        raise SolverFailed(f"the Nash bargain of {len(C)} tasks is off by {residual:.1e}")
    # Back from cosines: the answer for unit gradients, divided by their lengths.
    return w / lengths
