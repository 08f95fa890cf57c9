"""The networks at several preferences, each run forward and backward before the next.

Then the activations of one preference live at a time, and are still in the cache when the backward
pass comes. What the networks share, above all the merging of their weights, is computed once: each
network but the last starts from leaves in place of it, and the last backward pass goes through the
shared part with the gradients that all of them have left.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lorpman.manifold.stacked_outputs import stack_outputs

if TYPE_CHECKING:
    from lorpman.manifold.base import Manifold
    from lorpman.manifold.parameter_manifold import LateWeight, ParameterManifold


class OneByOne:
    """Networks that share nothing: each preference goes through the whole manifold.

    Args:
        model: The manifold.
        alphas: The preferences ``[b, m]``.
    """

    def __init__(self, model: "Manifold", alphas: Tensor) -> None:
        self.model, self.alphas = model, alphas

    def at(self, index: int) -> Callable[[Any], Any]:
        """The network at one of the preferences; they are run in order, each once.

        Args:
            index: Which preference.

        Returns:
            A function of what the network takes, whose outputs are led by 1.
        """
        alpha = self.alphas[index : index + 1]
        return lambda x: self.model(x, alpha)

    def join(self, loss: Tensor) -> Tensor:
        """The loss whose backward pass completes the gradients of all networks.

        Args:
            loss: The scalar of the last network; the backward passes of the others are done.

        Returns:
            A scalar of the same value.
        """
        return loss


class MergedOnce(OneByOne):
    """Networks in parameter space: all weights are merged when the first network runs.

    Args:
        model: The manifold.
        alphas: The preferences ``[b, m]``.
    """

    model: "ParameterManifold"

    def __init__(self, model: "ParameterManifold", alphas: Tensor) -> None:
        super().__init__(model, alphas)
        self._varied: Mapping[str, Sequence[Tensor | LateWeight]] | None = None
        self._cuts: list[tuple[Tensor, Tensor]] = []

    def at(self, index: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            if self._varied is None:
                self._varied = self.model.weights_on(x, self.alphas)
            row = {name: values[index] for name, values in self._varied.items()}
            if index < len(self.alphas) - 1:
                row = {name: self._apart(value) for name, value in row.items()}
            return stack_outputs([self.model.run_with(row, x)])

        return run

    def _apart(self, weight: "Tensor | LateWeight") -> "Tensor | LateWeight":
        if isinstance(weight, Tensor):
            return self._cut(weight)
        weight.cut = self._cut
        return weight

    def _cut(self, shared: Tensor) -> Tensor:
        """A leaf in place of what other networks share with this one."""
        if not shared.requires_grad:
            return shared
        leaf = shared.detach().requires_grad_()
        self._cuts.append((shared, leaf))
        return leaf

    def join(self, loss: Tensor) -> Tensor:
        used = [(shared, leaf.grad) for shared, leaf in self._cuts if leaf.grad is not None]
        self._cuts.clear()
        # Late weights know this object: the circle would keep the graph alive after the step, and
        # with it what autograd remembers of parameters that may be made smaller then.
        self._varied = None
        if not used:
            return loss
        shared, gradients = zip(*used, strict=True)
        return _Join.apply(loss, gradients, *shared)


class _Join(torch.autograd.Function):
    """The value of ``loss``; on the way back, ``shared`` gets the gradients that were left."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, gradients: Sequence[Tensor], *shared: Tensor) -> Tensor:
        del shared
        ctx.gradients = gradients
        return loss.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_loss: Tensor) -> tuple[Tensor | None, ...]:
        # Not times to_loss: the other losses were scaled by it in their own backward passes.
        return to_loss, None, *ctx.gradients
