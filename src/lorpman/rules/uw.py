"""Uncertainty weighting (Kendall et al., CVPR 2018)."""

import torch
from torch import Tensor, nn

from lorpman.manifold.base import Manifold
from lorpman.rules.objective import Term
from lorpman.rules.rule_state import ensure_parameter


class UncertaintyWeighting(Term):
    """``1/2 sum_i (exp(-s_i) f_i + s_i)``, with the scales ``s`` learned beside the network.

    For a loss that stays at ``f``, ``s`` tends to ``ln f``.

    Args:
        initial: What every ``s`` starts from.
    """

    scales: nn.Parameter
    """``s``, ``[m]``."""

    def __init__(self, initial: float = 0.0) -> None:
        super().__init__()
        self.initial = initial

    def prepare(self, model: Manifold) -> None:
        """Make a scale for each task."""
        ensure_parameter(self, "scales", torch.full((model.num_tasks,), self.initial))

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """Half the sum of scaled losses ``[b, m]`` and scales, ``[]``."""
        del alphas, model
        return 0.5 * ((-self.scales).exp() * losses + self.scales).sum()
