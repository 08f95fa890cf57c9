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


def gram_matrix(losses: Tensor, parameters: Sequence[nn.Parameter]) -> Tensor:
    """Inner products of the gradients of the ``losses [k]``, ``[k, k]`` in double precision."""
    by_parameter = zip(*gradients(losses, parameters), strict=True)
    total = losses.new_zeros(len(losses), len(losses), dtype=torch.float64)
    for found in by_parameter:
        flat = torch.stack([g.flatten() for g in found])
        total += (flat @ flat.T).double()
    return total
