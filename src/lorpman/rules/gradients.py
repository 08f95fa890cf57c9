"""Gradients of single losses, as balancing rules need them."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn


def gradients(losses: Tensor, parameters: Sequence[nn.Parameter]) -> Iterator[list[Tensor]]:
    """The gradient of each of the ``losses [k]``, one tensor per parameter; the graph is kept."""
    for loss in losses:
        found = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
        pairs = zip(found, parameters, strict=True)
        yield [torch.zeros_like(p) if gradient is None else gradient for gradient, p in pairs]


def gradient_norms(losses: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """The norm of the gradient of each of the ``losses [k]``, ``[k]``."""
    rows = (torch.stack([g.norm() for g in found]) for found in gradients(losses, parameters))
    return torch.stack([norms.norm() for norms in rows])
