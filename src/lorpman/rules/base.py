"""The seam between losses and gradients: what a rule is told, and what it must leave behind."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from lorpman.manifold.base import Manifold


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

    @cached_property
    def losses(self) -> Tensor:
        """The loss of every task at every preference, ``[b, m]``, with its graph.

        The forward pass runs when this is first read, so that a rule can watch it.
        """
        return self.losses_at(self.alphas, self.batch)


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
