"""Dynamic weight average (Liu et al., CVPR 2019)."""

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.rules.base import Rule, Step
from lorpman.rules.rule_state import ensure_buffer


class DynamicWeightAverage(Rule):
    """Tasks that stopped improving get more: weights ``m softmax(ratio / temperature)``.

    A task's ratio is its mean loss in the last period over that in the one before. All weights
    are 1 until two periods are over.

    Args:
        temperature: How evenly the weights are spread, above 0.
        period: How many steps a period has, as in PaMaL's code (25); None: an epoch, as
            published.

    Raises:
        UsageError: If ``temperature`` is not positive.
    """

    history: Tensor
    """Mean losses of the last two periods and the sum of the running one, ``[3, m]``."""
    counts: Tensor
    """Finished periods, steps in the running one, and its epoch."""

    def __init__(self, temperature: float = 2.0, period: int | None = None) -> None:
        super().__init__()
        if not temperature > 0:
            raise UsageError(f"temperature must be positive, got {temperature}")
        self.temperature = temperature
        self.period = period

    def prepare(self, model: Manifold) -> None:
        """Make room for the history of every task's loss."""
        ensure_buffer(self, "history", torch.zeros(3, model.num_tasks))
        ensure_buffer(self, "counts", torch.zeros(3, dtype=torch.long))

    def backward(self, step: Step) -> None:
        """Leave the gradient of the losses, weighted by what the last two periods say."""
        steps, epoch = int(self.counts[1]), int(self.counts[2])
        # By the first step of the next epoch: a rule is not told how many steps an epoch has.
        over = epoch != step.epoch if self.period is None else steps == self.period
        if over and steps:
            self._finish_period()
        self.counts[2] = step.epoch
        weights = torch.ones_like(self.history[0])
        # A ratio takes two finished periods.
        if self.counts[0] >= 2:
            weights = dwa_weights(self.history[1] / self.history[0], self.temperature)
        self.history[2] += step.losses.detach().mean(0).to(self.history)
        self.counts[1] += 1
        step.backward((weights.to(step.losses) * step.losses).sum())

    def _finish_period(self) -> None:
        mean = self.history[2] / self.counts[1]
        self.history.copy_(torch.stack([self.history[1], mean, torch.zeros_like(mean)]))
        self.counts[0] += 1
        self.counts[1] = 0


def dwa_weights(ratio: Tensor, temperature: float = 2.0) -> Tensor:
    """``m softmax(ratio / temperature)``; a task that was at zero counts as unchanged.

    Args:
        ratio: Each task's last loss over the one before, ``[m]``.
        temperature: See :class:`DynamicWeightAverage`.

    >>> dwa_weights(torch.tensor([0.5, 1.0]))
    tensor([0.8756, 1.1244])
    """
    ratio = torch.nan_to_num(ratio, nan=1.0, posinf=1.0, neginf=1.0)
    return len(ratio) * (ratio / temperature).softmax(0)
