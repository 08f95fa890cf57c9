"""The seam between losses and gradients: what a rule is told, and what it must leave behind."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lorpman.manifold.base import Manifold
from lorpman.manifold.one_by_one import OneByOne

Network = Callable[[Any], Any]
"""One network of ``model.one_by_one``: what it takes to outputs that are led by 1."""
LossesOf = Callable[[Network, Tensor], Tensor]


@dataclass(frozen=True)
class Step:
    """One training step as a rule sees it."""

    alphas: Tensor
    """The preferences, ``[b, m]``."""
    model: Manifold
    """The manifold that is trained."""
    backward: Callable[[Tensor], None]
    """Back-propagates a scalar; use it instead of ``Tensor.backward``."""
    losses_at: Callable[[Tensor, Any], Tensor]
    """``(alphas [b, m], batch) -> losses [b, m]``: another forward pass, for rules that look
    ahead."""
    batch: Any
    """The mini-batch ``(x, y)`` of this step."""
    another_batch: Callable[[], Any]
    """Draws one more training batch, for rules that measure on other data than they train on."""
    epoch: int
    """Counted from 0."""
    epochs: int
    """How many epochs the run has."""
    optimizer: Optimizer
    """The run's optimiser, for rules that look ahead: they read its rate and momentum."""
    losses_of: LossesOf | None = None
    """``(network, alpha [1, m]) -> losses [1, m]`` on this step's batch, for one network of
    ``model.one_by_one``; None where all preferences go through the model together."""

    @cached_property
    def losses(self) -> Tensor:
        """The loss of every task at every preference, ``[b, m]``, with its graph.

        The forward pass runs when this is first read, so that a rule can watch it.
        """
        return self.losses_at(self.alphas, self.batch)

    def backward_one_by_one(
        self,
        networks: OneByOne,
        at_each: Callable[[Tensor, Tensor], Tensor],
        once: Callable[[], Tensor] | None,
    ) -> None:
        """Forward and backward for one preference after the other; ``losses`` has no graph then.

        Args:
            networks: Those of the model at this step's preferences.
            at_each: ``(alpha [1, m], losses [1, m]) -> []``; the objective is its sum over the
                preferences.
            once: What the objective adds beside, ``[]``; None for nothing.
        """
        assert self.losses_of is not None, "this step takes all preferences together"
        rows = []
        for index, alpha in enumerate(self.alphas.split(1)):
            losses = self.losses_of(networks.at(index), alpha)
            value = at_each(alpha, losses)
            if index == len(self.alphas) - 1:
                # After all forward passes, as when all preferences go together: the order in which
                # random numbers are drawn stays the same.
                value = networks.join(value if once is None else value + once())
            self.backward(value)
            rows.append(losses.detach())
        # Where the property keeps its value.
        vars(self)["losses"] = torch.cat(rows)


class Rule(nn.Module, ABC):
    """Turns losses into gradients. A module, so that its state survives a checkpoint.

    Its own parameters, if it has any, are trained by the run's optimiser beside the model's.
    """

    def prepare(self, model: Manifold) -> None:
        """Called once before training, to size what depends on the number of tasks.

        Args:
            model: The manifold that will be trained.

        Raises:
            UsageError: If this rule does not apply to ``model``; the message says why.
        """

    @abstractmethod
    def backward(self, step: Step) -> None:
        """Leave the gradient of every trainable parameter in its ``grad``.

        Args:
            step: What is known of this training step.
        """
