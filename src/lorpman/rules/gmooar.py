"""GMOOAR (Chen and Kwok, NeurIPS 2022): one conditioned network, reference vectors that learn."""

from typing import Literal

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.front.hypervolume_gradient import hypervolume_gradient
from lorpman.manifold.base import Manifold
from lorpman.manifold.learned_preferences import Learned
from lorpman.rules.base import Rule, Step
from lorpman.rules.objective import Linear, Term
from lorpman.rules.solvers import project_simplex
from lorpman.rules.task_gradients import buffers_restored

Quality = Literal["uniform", "hypervolume"]

# Every step computes one volume per reference and task; beyond this many tasks that takes seconds.
_MOST_TASKS = 5


class GMOOAR(Rule):
    """The network descends at all references, and the references spread over the front.

    The network lowers the sum of scalarised losses; on another batch, the references follow the
    gradient of the set's quality (first order only). They are preferences, so they are projected
    onto the simplex. Needs an ``lp.Learned`` over a manifold that is differentiable in alpha.

    Args:
        quality: "uniform" lowers ``sum_ij exp(-|f_i - f_j|^2 / width^2)``, "hypervolume" raises
            the hypervolume up to 1.1 times the worst losses of the set.
        rate: The learning rate of the references.
        width: How far apart losses still repel each other.
        lower: What the network descends; by default linear scalarisation.

    Raises:
        UsageError: If ``rate`` or ``width`` is not positive.
    """

    def __init__(
        self,
        quality: Quality = "uniform",
        rate: float = 0.005,
        width: float = 0.01,
        lower: Term | None = None,
    ) -> None:
        super().__init__()
        if not (rate > 0 and width > 0):
            raise UsageError(f"rate and width must be positive, got {rate} and {width}")
        self.quality: Quality = quality
        self.rate = rate
        self.width = width
        self.lower = Linear() if lower is None else lower

    def prepare(self, model: Manifold) -> None:
        """Check that ``model`` has references, and not too many tasks.

        Raises:
            UsageError: If it has not.
        """
        if not isinstance(model, Learned):
            raise UsageError(
                f"GMOOAR moves reference vectors; it applies to lp.Learned(manifold, count), "
                f"found {type(model).__name__}"
            )
        if self.quality == "hypervolume" and model.num_tasks > _MOST_TASKS:
            raise UsageError(
                f"hypervolume gradients are quick enough up to {_MOST_TASKS} tasks, found "
                f"{model.num_tasks}; use quality='uniform'"
            )
        self.lower.prepare(model)

    def backward(self, step: Step) -> None:
        """Move the references, then leave the gradient of the scalarised losses."""
        self._move_references(step)
        self.lower.backward(step)

    def _move_references(self, step: Step) -> None:
        model = step.model
        assert isinstance(model, Learned)
        references = step.alphas.detach().clone().requires_grad_()
        with buffers_restored(model):
            losses = step.losses_at(references, step.another_batch())
        # First order: how the network would follow the references is left out.
        slope = self._slope(losses.detach())
        (gradient,) = torch.autograd.grad(losses, references, slope.to(losses))
        with torch.no_grad():
            model.references.copy_(project_simplex(references - self.rate * gradient))

    def _slope(self, losses: Tensor) -> Tensor:
        """The derivative of what the references descend in the losses, ``[n, m]``."""
        if self.quality == "hypervolume":
            # Beyond the worst losses: a point on the reference itself would have no gradient.
            worst = losses.amax(0)
            return -hypervolume_gradient(losses, worst + 0.1 * worst.abs())
        return uniformity_gradient(losses, self.width)


def uniformity_gradient(losses: Tensor, width: float) -> Tensor:
    """The derivative of ``sum_ij exp(-|f_i - f_j|^2 / width^2)`` in the losses.

    Args:
        losses: The losses ``f`` at every reference, ``[n, m]``.
        width: How far apart losses still repel each other.

    Returns:
        ``[n, m]``.
    """
    f = losses.detach().clone().requires_grad_()
    squared = (f[:, None] - f[None, :]).square().sum(-1)
    return torch.autograd.grad((-squared / width**2).exp().sum(), f)[0]
