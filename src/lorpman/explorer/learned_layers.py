"""What a LORPMAN run has learned, layer by layer."""

from dataclasses import dataclass

import torch

from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank


@dataclass(frozen=True)
class Layer:
    """The low-rank matrices ``B_i A_i`` of one weight, i = 1..m."""

    name: str
    correlation: list[list[float]]
    """``<B_i A_i, B_j A_j> / (|B_i A_i| |B_j A_j|)``, ``[m, m]``; 0 where one of them is zero."""
    energy: list[float]
    """``|s B_i A_i|^2 / |theta_0|^2``, ``[m]``."""


@torch.no_grad()
def layers(model: Manifold | None) -> list[Layer]:
    """The layers of a low-rank manifold, in the network's order; none for any other one."""
    core = None if model is None else model.innermost
    if not isinstance(core, LowRank):
        return []
    main = dict(core.network.named_parameters())
    found = []
    for name, delta in core.low_rank_deltas().items():
        gram = delta.gram().double()
        squares = gram.diagonal().clamp_min(0.0)
        lengths = squares.sqrt()
        scale = (lengths[:, None] * lengths[None, :]).clamp_min(1e-30)
        whole = main[name].double().square().sum().clamp_min(1e-30)
        energy = core.scale**2 * squares / whole
        found.append(Layer(name, (gram / scale).tolist(), energy.tolist()))
    return found
