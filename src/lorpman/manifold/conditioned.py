"""What COSMOS and FiLM share: a network that is told the preference."""

from abc import abstractmethod
from typing import Any

from torch import Tensor, nn

from lorpman.manifold.base import Manifold
from lorpman.manifold.copying import copy_network
from lorpman.manifold.network_parameters import check_network
from lorpman.manifold.stacked_outputs import stack_outputs
from lorpman.preference import as_preference


class ConditionedManifold(Manifold):
    """What COSMOS and FiLM share: a network of their own, run once per preference.

    Args:
        network: Any network; it is copied.
        num_tasks: The number m of tasks.

    Raises:
        UsageError: If the network cannot be used.
    """

    def __init__(self, network: nn.Module, num_tasks: int) -> None:
        super().__init__(num_tasks)
        check_network(network, num_tasks)
        self.network = copy_network(network)

    @abstractmethod
    def _at(self, x: Any, alpha: Tensor) -> Any:
        """The output at one preference ``[m]``."""

    def forward(self, x: Any, alpha: Tensor) -> Any:
        alpha = self._on_device(alpha)
        if alpha.ndim == 1:
            return self._at(x, alpha)
        return stack_outputs([self._at(x, row) for row in alpha])

    def _one(self, alpha: Tensor) -> Tensor:
        """``alpha`` checked to be one preference, as a solution needs it."""
        alpha = self._on_device(alpha)
        if alpha.ndim != 1:
            raise ValueError(f"solution takes one preference [m], got {list(alpha.shape)}")
        return alpha

    def _on_device(self, alpha: Tensor) -> Tensor:
        # The preference goes into the network as numbers, so it needs the type of the weights too.
        like = next(self.network.parameters())
        return as_preference(alpha, self.num_tasks).to(like.device, like.dtype)
