"""What gradient balancers share: they see the tasks' gradients and choose one direction."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.manifold.finite import Population, Single
from lorpman.rules.base import Rule, Step
from lorpman.rules.task_gradients import Pairs, TaskGradients, leave, task_gradients


@dataclass(frozen=True)
class Row:
    """One preference of a step, as a balancer sees it. Detached, float64, on the CPU."""

    index: int
    step: Step
    losses: Tensor
    """``[m]``"""
    gram: Tensor
    """Inner products of the tasks' gradients of the shared parameters, ``[m, m]``."""

    @classmethod
    def of(cls, gradients: TaskGradients, index: int, step: Step) -> "Row":
        losses = step.losses[index].detach().to("cpu", torch.float64)
        return cls(index, step, losses, gradients.gram())

    @property
    def all_losses(self) -> Tensor:
        """The losses at every preference of the step, ``[b, m]``."""
        return self.step.losses.detach().to("cpu", torch.float64)

    @property
    def alpha(self) -> Tensor:
        return self.step.alphas[self.index].detach().to("cpu", torch.float64)


class Balancer(Rule):
    """A rule that makes one direction out of the tasks' gradients, for each network by itself."""

    def prepare(self, model: Manifold) -> None:
        require_finite(self, model)

    def backward(self, step: Step) -> None:
        pairs: Pairs = []
        for index in range(len(step.alphas)):
            gradients = task_gradients(step, index)
            pairs += self.direct(gradients, index, step)
        leave(step, pairs)

    @abstractmethod
    def direct(self, gradients: TaskGradients, index: int, step: Step) -> Pairs:
        """The gradient that every parameter of network ``index`` is to get."""


class Weighting(Balancer):
    """A balancer whose direction is a weighted sum, ``sum_i w_i gradient_i``."""

    def direct(self, gradients: TaskGradients, index: int, step: Step) -> Pairs:
        weights = self.weights(Row.of(gradients, index, step))
        return gradients.weighted(weights, self.head_weights(weights))

    @abstractmethod
    def weights(self, row: Row) -> Tensor:
        """The weights ``[m]`` of the tasks' gradients."""

    def head_weights(self, weights: Tensor) -> Tensor:
        """What each task's own head is trained with, ``[m]``; as published for each method."""
        return weights


def require_finite(rule: Rule, model: Manifold) -> None:
    """Refuse a continuous manifold: a balancer would teach it to ignore the preference."""
    if not isinstance(model, Single | Population):
        raise UsageError(
            f"{type(rule).__name__} finds its own compromise whatever the preference; it applies "
            f"to lp.Single or lp.Population, found {type(model).__name__}"
        )


def require_population(rule: Rule, model: Manifold, at_least: int = 1) -> Population:
    """The model, if it is a population of enough members."""
    if not isinstance(model, Population):
        raise UsageError(
            f"{type(rule).__name__} trains a set of networks; it applies to lp.Population, "
            f"found {type(model).__name__}"
        )
    if len(model.members) < at_least:
        raise UsageError(
            f"{type(rule).__name__} needs at least {at_least} members, found {len(model.members)}"
        )
    return model
