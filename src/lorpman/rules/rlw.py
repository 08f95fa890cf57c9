"""Random loss weighting (Lin et al., TMLR 2022)."""

import torch
from torch import Tensor

from lorpman.manifold.base import Manifold
from lorpman.rules.objective import Term


class RandomWeighting(Term):
    """Weights drawn anew in every step: the softmax of independent normal numbers."""

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """The losses ``[b, m]`` in a random weighting of each preference, summed: ``[]``."""
        del alphas, model
        # Drawn on the CPU, so that a seed means the same on every device.
        weights = torch.randn(losses.shape).softmax(1)
        return (weights.to(losses) * losses).sum()
