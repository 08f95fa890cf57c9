"""A model and its optimiser as they stand on a run's devices, wrapped by Fabric."""

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lorpman._torch import call_in_precision, forward_without_ban, setup_as_compiled
from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.rules.base import LossesOf, Network, Rule, Step
from lorpman.training.options import Placement
from lorpman.training.processes import average_gradients

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class PlacedModel:
    """Runs the model in the run's precision, and gives every process the same gradients.

    Args:
        model: The manifold that is trained.
        rule: Turns its losses into gradients.
        optimizer: Moves the parameters of both.
        placement: Devices, processes and precision.
    """

    def __init__(
        self, model: Manifold, rule: Rule, optimizer: Optimizer, placement: Placement
    ) -> None:
        self.model, self.rule, self.plain_optimizer = model, rule, optimizer
        self.fabric = _one_process() if placement.fabric is None else placement.fabric
        self.compiled = placement.compiled
        self.all_at_once = placement.all_at_once
        self._synchronised = self._past_wrapper = False
        self.set_up()

    def set_up(self) -> None:
        """Wrap model and optimiser; again whenever parameters stop being trained or shrink."""
        # Let go of the wrapper before this one first: it keeps buffers for parameters of their old
        # sizes, and hooks on them.
        self.wrapped = self.optimizer = cast("Any", None)
        self.rule.to(self.fabric.device)
        module: nn.Module = self.model
        if self.compiled:
            module = cast("nn.Module", torch.compile(self.model))
        # Compiled inside Fabric's wrapper and not around it, since forward looks into the wrapper.
        self.wrapped, self.optimizer = setup_as_compiled(self.fabric, module, self.plain_optimizer)

    def forward(self, x: Any, alphas: Tensor, network: Network | None = None) -> Any:
        """The outputs at several preferences, in the run's precision.

        Fabric forbids gradients that do not come from ``fabric.backward``; that ban is lifted
        here, since rules that balance tasks take gradients themselves.

        Args:
            x: What the networks take.
            alphas: The preferences ``[b, m]``.
            network: Runs in place of the model: one of ``model.one_by_one(...)``.
        """
        if network is not None:
            self._past_wrapper = True
            return call_in_precision(self.fabric, network, x)
        return forward_without_ban(self.fabric, self.wrapped, x, alphas)

    def one_by_one(self, losses_of: LossesOf) -> LossesOf | None:
        """``losses_of`` where preferences should go through the model one after the other.

        Args:
            losses_of: ``(network, alpha [1, m]) -> losses [1, m]``.

        Returns:
            The same, or None where they should go together: if that was asked for, or if the model
            is compiled, which is done for all preferences of a step.
        """
        return None if self.all_at_once or self.compiled else losses_of

    def backward(self, loss: Tensor) -> None:
        """Back-propagate a scalar; the wrapper averages its gradients over all processes.

        Args:
            loss: The scalar.
        """
        self._synchronised = True
        self.fabric.backward(loss)

    def gradients(self, step: Step) -> None:
        """Let the rule leave its gradients, the same on every process.

        Args:
            step: The present step, with its losses.

        Raises:
            UsageError: If the rule takes gradients itself where losses are scaled.
        """
        self._synchronised = self._past_wrapper = False
        try:
            self.rule.backward(step)
        except RuntimeError as error:
            # Only the text tells that a backward pass went around Fabric, which it forbids in
            # 16-mixed.
            if "fabric.backward" not in str(error):
                raise
            raise UsageError(
                f"{type(self.rule).__name__} takes gradients itself, without the scaling of "
                "losses that 16-mixed needs; use the precision bf16-mixed or 32-true"
            ) from None
        if self.fabric.world_size > 1:
            # The wrapper knows neither gradients that a rule set by itself, nor those of networks
            # that ran one by one, nor the rule's own parameters.
            seen = self._synchronised and not self._past_wrapper
            unseen = [] if seen else list(self.model.parameters())
            average_gradients(self.fabric, [*unseen, *self.rule.parameters()])


def _one_process() -> "Fabric":
    from lightning_fabric import Fabric

    return Fabric(devices=1)
