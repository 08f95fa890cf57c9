"""What gradient balancers share: they see the tasks' gradients and choose one direction."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.manifold.finite import Population, Single
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.rules.base import Rule, Step
from lorpman.rules.task_gradients import (
    GradientPairs,
    TaskGradients,
    give_gradients,
    task_gradients,
)


@dataclass(frozen=True)
class Row:
    """One preference of a step, as a balancer sees it. Detached, float64, on the CPU."""

    index: int
    """Which preference of the step, from 0."""
    step: Step
    """The step that it is a part of."""
    losses: Tensor
    """The tasks' losses at this preference, ``[m]``."""
    gram: Tensor
    """Inner products of the tasks' gradients of the shared parameters, ``[m, m]``."""

    @classmethod
    def of(cls, gradients: TaskGradients, index: int, step: Step) -> "Row":
        """The row of one preference.

        Args:
            gradients: Those of its tasks.
            index: Which preference of the step, from 0.
            step: The step.
        """
        losses = step.losses[index].detach().to("cpu", torch.float64)
        return cls(index, step, losses, gradients.gram())

    @property
    def all_losses(self) -> Tensor:
        """The losses at every preference of the step, ``[b, m]``."""
        return self.step.losses.detach().to("cpu", torch.float64)

    @property
    def alpha(self) -> Tensor:
        """The preference itself, ``[m]``."""
        return self.step.alphas[self.index].detach().to("cpu", torch.float64)


class Balancer(Rule):
    """A rule that makes one direction out of the tasks' gradients, for each network by itself."""

    def prepare(self, model: Manifold) -> None:
        """Check that ``model`` is a network or a set of networks.

        Raises:
            UsageError: If it is a continuous manifold.
        """
        require_finite(self, model)

    def backward(self, step: Step) -> None:
        """Leave :meth:`direct`'s gradients, for every preference of the step."""
        # All networks first, then one backward pass: processes average gradients once per pass.
        pairs: GradientPairs = []
        for index in range(len(step.alphas)):
            gradients = task_gradients(step, index)
            pairs += self.direct(gradients, index, step)
        give_gradients(step, pairs)

    @abstractmethod
    def direct(self, gradients: TaskGradients, index: int, step: Step) -> GradientPairs:
        """The gradient that every parameter of one network is to get.

        Args:
            gradients: What the tasks ask for.
            index: Which preference of the step, from 0.
            step: The step.

        Returns:
            Parameters and their gradients.
        """


class Weighting(Balancer):
    """A balancer whose direction is a weighted sum, ``sum_i w_i gradient_i``."""

    def direct(self, gradients: TaskGradients, index: int, step: Step) -> GradientPairs:
        """The tasks' gradients, weighted by :meth:`weights` and :meth:`head_weights`."""
        weights = self.weights(Row.of(gradients, index, step))
        return gradients.weighted(weights, self.head_weights(weights))

    @abstractmethod
    def weights(self, row: Row) -> Tensor:
        """The weights of the tasks' gradients.

        Args:
            row: What is known of one preference.

        Returns:
            ``[m]``, float64 on the CPU.
        """

    def head_weights(self, weights: Tensor) -> Tensor:
        """What the gradient of each task's head is weighted with, as published for each method.

        Args:
            weights: Those of the shared gradients, ``[m]``.

        Returns:
            ``[m]``; by default the same weights.
        """
        return weights


def require_finite(rule: Rule, model: Manifold) -> None:
    """Refuse a continuous manifold: a balancer would teach it to ignore the preference.

    Args:
        rule: The balancer, for the message.
        model: The manifold that is to be trained.

    Raises:
        UsageError: If ``model`` is neither a Single nor a Population.
    """
    if not isinstance(model, Single | Population):
        raise UsageError(
            f"{type(rule).__name__} finds its own compromise whatever the preference; it applies "
            f"to lp.Single or lp.Population, found {type(model).__name__}"
        )


def require_population(rule: Rule, model: Manifold, at_least: int = 1) -> Population:
    """The model, if it is a population of enough members.

    Args:
        rule: The rule, for the message.
        model: The manifold that is to be trained.
        at_least: How many members there must be.

    Raises:
        UsageError: If it is not.
    """
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


def require_shared_bottom(rule: Rule, model: Manifold) -> SharedBottom:
    """The network of ``model``, if it has a bottom whose features can be looked at.

    Args:
        rule: The rule, for the message.
        model: The manifold that is to be trained.

    Raises:
        UsageError: If ``model`` is no Single over a SharedBottom.
    """
    if not isinstance(model, Single) or not isinstance(model.network, SharedBottom):
        inner = getattr(model, "network", None)
        kind = type(model).__name__ + ("" if inner is None else f" over {type(inner).__name__}")
        raise UsageError(
            f"{type(rule).__name__} looks at the features of a shared bottom; it applies to "
            f"lp.Single over an lp.SharedBottom, found {kind}"
        )
    return model.network
