"""The seam between methods and everything else: a family of networks, one per preference."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError, check_kind, whole_number
from lorpman.manifold.one_by_one import OneByOne
from lorpman.preference import Dirichlet, Sampler, grid


def check_manifold(model: object) -> None:
    """Refuse what is no manifold.

    Args:
        model: What the caller gave as a model.

    Raises:
        UsageError: If it is none; the message says how to make one.
    """
    check_kind("model", model, Manifold, "a manifold, such as lp.LowRank(network, num_tasks)")


class Manifold(nn.Module, ABC):
    """A network for every preference ``alpha``.

    ``alpha`` is always an argument and never state, so concurrent callers cannot disturb one
    another. Everything after training (evaluation, export, the explorer) sees this class only.

    Args:
        num_tasks: The number m of tasks, which is the length of a preference.

    Raises:
        UsageError: If there is no task.
    """

    def __init__(self, num_tasks: int) -> None:
        super().__init__()
        self.num_tasks = whole_number("num_tasks", num_tasks)

    @abstractmethod
    def forward(self, x: Any, alpha: Tensor) -> Any:
        """The outputs of the networks at one or several preferences.

        Args:
            x: What the network takes.
            alpha: A preference ``[m]``, or several ``[b, m]``.

        Returns:
            For ``[m]`` the network's own output; for ``[b, m]`` the same structure, in which each
            tensor is led by b.
        """

    @abstractmethod
    def solution(self, alpha: Tensor) -> nn.Module:
        """The plain network at one preference.

        Args:
            alpha: The preference ``[m]``.

        Returns:
            A module that shares no memory with the manifold.

        Raises:
            ValueError: If ``alpha`` is no preference, or several.
        """

    def one_by_one(self, alphas: Tensor) -> OneByOne | None:
        """The networks at several preferences, each run forward and backward before the next.

        Args:
            alphas: The preferences ``[b, m]``.

        Returns:
            The networks, or None where one pass for all preferences is to be preferred.
        """
        return OneByOne(self, alphas)

    @property
    def lends_weights(self) -> bool:
        """Whether :meth:`network_to_run` gives networks over the manifold's own weights."""
        return False

    def network_to_run(self, alpha: Tensor) -> nn.Module:
        """The network at one preference for running it only, without a copy where that can be.

        Args:
            alpha: The preference ``[m]``.
        """
        return self.solution(alpha)

    @property
    def innermost(self) -> "Manifold":
        """The manifold that holds the weights: this one, unless it only shows another one."""
        return self

    def preferences(self) -> Tensor:
        """The preferences ``[n, m]`` at which this manifold's front is shown."""
        return grid(self.num_tasks)

    def sampler(self, concentration: float) -> Sampler:
        """How training draws its preferences.

        Args:
            concentration: Of the Dirichlet distribution; manifolds of finitely many networks have
                no use for it.
        """
        return Dirichlet(concentration)

    def shared_parameters(self, alpha: Tensor) -> list[nn.Parameter]:
        """The trained parameters through which the tasks compete, without heads.

        They are what gradient balancers weigh. By default everything that is trained.

        Args:
            alpha: The preference ``[m]``.
        """
        return self.parameters_at(alpha)

    def parameters_at(self, alpha: Tensor) -> list[nn.Parameter]:
        """The trained parameters of the network at one preference, heads included.

        By default everything that is trained.

        Args:
            alpha: The preference ``[m]``.
        """
        del alpha
        return [p for p in self.parameters() if p.requires_grad]

    @property
    def can_freeze(self) -> bool:
        """Whether there are main weights that :meth:`freeze` could stop."""
        return type(self).freeze is not Manifold.freeze

    @property
    def frozen(self) -> bool:
        """Whether the main weights stay still; once frozen, they do so in a later ``fit`` too."""
        return False

    def freeze(self, heads: bool = False) -> None:
        """Stop the main weights for the rest of training.

        Args:
            heads: Whether the heads are stopped too.

        Raises:
            UsageError: If there are no main weights, as :attr:`can_freeze` tells.
        """
        del heads
        raise UsageError(
            f"{type(self).__name__} has no main network to freeze; leave freeze_epoch unset"
        )

    def begin_epoch(self, epoch: int, epochs: int) -> Mapping[nn.Parameter, "Cut"]:
        """Called before every epoch of training; a manifold may make its parameters smaller here.

        Args:
            epoch: The epoch that begins, counted from 0.
            epochs: How many there are in all.

        Returns:
            How parameters were made smaller, so that what others know of them, such as an
            optimiser's momentum, can follow.
        """
        del epoch, epochs
        return {}

    def after_backward(self) -> None:
        """Called in training when the gradients of a step are there, the same on every process."""

    def num_parameters(self) -> int:
        """How many numbers training learns."""
        return sum(p.numel() for p in self.parameters())

    def trace(self) -> Mapping[str, Any]:
        """Plain values to be logged after every epoch of a run; none by default."""
        return {}


@dataclass(frozen=True)
class Cut:
    """What happened to a parameter that is smaller now."""

    before: torch.Size
    """Its shape until now."""
    cut: Callable[[Tensor], Tensor]
    """The part of a tensor of that shape that belongs to what is left of it."""
