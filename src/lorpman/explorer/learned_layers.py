"""What a LORPMAN run has learned, layer by layer."""

from dataclasses import dataclass

import torch

from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank

# At the start of training B = 0, and so are the lengths below: 0/0 without it.
_TINY = 1e-30


@dataclass(frozen=True)
class LayerDeltas:
    """The low-rank matrices ``B_i A_i`` of one weight, i = 1..m, in numbers."""

    name: str
    """The name of the weight in the network."""
    correlation: list[list[float]]
    """``<B_i A_i, B_j A_j> / (|B_i A_i| |B_j A_j|)``, ``[m, m]``; 0 where one of them is zero."""
    energy: list[float]
    """``|s B_i A_i|^2 / |theta_0|^2``, ``[m]``."""


@torch.no_grad()
def learned_layers(model: Manifold | None) -> list[LayerDeltas]:
    """The layers of a low-rank manifold.

    Args:
        model: Any manifold, or None where a run's weights are missing.

    Returns:
        One entry per adapted weight, in the network's order; none for other manifolds.
    """
    # A manifold that learns its preferences wraps the one that has the weights.
    manifold = None if model is None else model.innermost
    if not isinstance(manifold, LowRank):
        return []
    main_weights = dict(manifold.network.named_parameters())
    layers = []
    for name, delta in manifold.low_rank_deltas().items():
        gram = delta.gram().double()
        squares = gram.diagonal().clamp_min(0.0)
        lengths = squares.sqrt()
        correlation = gram / (lengths[:, None] * lengths[None, :]).clamp_min(_TINY)
        main = main_weights[name].double().square().sum().clamp_min(_TINY)
        energy = manifold.scale**2 * squares / main
        layers.append(LayerDeltas(name, correlation.tolist(), energy.tolist()))
    return layers
