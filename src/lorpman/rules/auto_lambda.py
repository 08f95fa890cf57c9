"""Auto-λ (Liu et al., TMLR 2022): task weights that lower the loss on other data, one step on."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.manifold.base import Manifold
from lorpman.rules.balancer import require_finite
from lorpman.rules.base import Rule, Step
from lorpman.rules.rule_state import BufferedAdam, ensure_buffer
from lorpman.rules.task_gradients import buffers_restored

Values = list[Tensor]


class AutoLambda(Rule):
    """``sum_i lambda_i f_i``, where ``lambda`` descends the next step's loss on another batch.

    The next step is unrolled as plain gradient descent at the run's learning rate, with the
    momentum and weight decay of SGD where the run uses it. Costs two more backward and
    three more forward passes. ``lambda`` is unconstrained, as published.

    Args:
        initial: What every ``lambda`` starts from.
        rate: The learning rate of ``lambda``.
    """

    lambdas: Tensor
    """The weights of the tasks, ``[m]``."""

    def __init__(self, initial: float = 0.1, rate: float = 1e-4) -> None:
        super().__init__()
        self.initial = initial
        self.rate = rate

    def prepare(self, model: Manifold) -> None:
        """Make a weight for each task.

        Raises:
            UsageError: If ``model`` is continuous.
        """
        require_finite(self, model)
        ensure_buffer(self, "lambdas", torch.full((model.num_tasks,), self.initial))
        # A rule that was prepared before, by a run that this one continues, keeps its moments.
        if not hasattr(self, "adam"):
            self.adam = BufferedAdam(self.lambdas)

    def backward(self, step: Step) -> None:
        """Move ``lambda``, then leave the gradient of the losses weighted by it."""
        # Before anything looks ahead: the network runs when losses are first asked for.
        losses = step.losses
        gradient = lambda_gradient(step, self.lambdas)
        self.lambdas += self.adam.change(gradient.to(self.lambdas), self.rate)
        step.backward((self.lambdas.to(losses) * losses).sum())


def lambda_gradient(step: Step, lambdas: Tensor) -> Tensor:
    """``-rate <grad f_val(theta'), grad f_i(theta)>`` for every task i, ``[m]``.

    By a central difference along ``d = grad f_val(theta')``: two forward passes instead of one
    gradient per task. Leaves weights and buffers as they were.

    Args:
        step: The step, whose losses are taken at theta.
        lambdas: The weights of the tasks, ``[m]``.

    Returns:
        The gradient of ``lambda``, ``[m]``.
    """
    parameters = [p for p in step.model.parameters() if p.requires_grad]
    scalar = (lambdas.to(step.losses) * step.losses).sum()
    gradients = torch.autograd.grad(scalar, parameters, retain_graph=True, allow_unused=True)
    before = [p.detach().clone() for p in parameters]
    rate = float(step.optimizer.param_groups[0]["lr"])
    with buffers_restored(step.model):
        try:
            _overwrite(parameters, _next_step(step, parameters, gradients, rate))
            ahead = step.losses_at(step.alphas, step.another_batch()).sum()
            d = torch.autograd.grad(ahead, parameters, allow_unused=True)
            length = sum((float(g.square().sum()) for g in d if g is not None), 0.0) ** 0.5
            # No slope on the other batch: every lambda is as good as any other.
            if length == 0:
                return torch.zeros_like(lambdas)
            # As published: far enough for the difference to stand out of the rounding.
            width = 0.01 / length
            ends = [_losses_beside(step, parameters, before, d, s * width) for s in (1, -1)]
        finally:
            _overwrite(parameters, before)
    return -rate * (ends[0] - ends[1]) / (2 * width)


def _next_step(
    step: Step, parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None], rate: float
) -> Values:
    """The parameters after one step of plain gradient descent, or of SGD with its momentum."""
    groups = {id(p): group for group in step.optimizer.param_groups for p in group["params"]}
    moved = []
    for p, gradient in zip(parameters, gradients, strict=True):
        group: dict[str, Any] = groups.get(id(p), {})
        total = torch.zeros_like(p) if gradient is None else gradient.clone()
        buffer = step.optimizer.state.get(p, {}).get("momentum_buffer")
        if buffer is not None:
            total += group.get("momentum", 0.0) * buffer
        total += group.get("weight_decay", 0.0) * p.detach()
        moved.append(p.detach() - rate * total)
    return moved


@torch.no_grad()
def _losses_beside(
    step: Step,
    parameters: Sequence[nn.Parameter],
    before: Values,
    d: Sequence[Tensor | None],
    width: float,
) -> Tensor:
    """The losses ``[m]`` of this step's batch at ``theta + width d``."""
    _overwrite(
        parameters,
        [p if g is None else p + width * g for p, g in zip(before, d, strict=True)],
    )
    # The same dropout at both ends, or their difference would be noise.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return step.losses_at(step.alphas, step.batch).sum(0)


def _overwrite(parameters: Sequence[nn.Parameter], values: Values) -> None:
    for p, value in zip(parameters, values, strict=True):
        # Not tracked: the graph of the step's own losses must stay valid.
        p.data.copy_(value)
