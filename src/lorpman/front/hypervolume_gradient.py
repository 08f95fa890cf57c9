"""How hypervolume changes when one loss of one point changes."""

import numpy as np
import torch
from torch import Tensor

from lorpman.errors import UsageError, check_kind
from lorpman.front.dominance import Floats, as_array, non_dominated_mask
from lorpman.front.hypervolume import hypervolume


def hypervolume_gradient(points: Tensor, reference: Tensor | list[float] | float) -> Tensor:
    """The gradient of the volume between points, which are to be small, and a reference.

    Point j, moved by a little along axis i, sweeps the part of its facet ``{z: z_i = p_ji,
    p_j <= z <= reference}`` that no other point covers, so ``-dV/dp_ji`` is the volume of that
    part: the facet's own less that of the other points clipped to it, both of m - 1 dimensions.
    For any m this is exact as long as that volume is (see ``lp.hypervolume``; always up to 16
    points), and beyond that sampled.

    A dominated point, and one not strictly inside the reference, has gradient 0. Where points
    share a coordinate, the gradient towards more loss is taken. Equal points share theirs.

    Args:
        points: Losses, ``[n, m]``.
        reference: The worst that counts: one number, or one per task.

    Returns:
        ``[n, m]``, nowhere above 0.

    Raises:
        UsageError: If ``points`` are no floats ``[n, m]``.

    >>> hypervolume_gradient(torch.tensor([[0.5, 1.5], [1.5, 0.5]]), 2.0)
    tensor([[-0.5000, -1.0000],
            [-1.0000, -0.5000]])
    """
    check_kind("points", points, Tensor, "a tensor [n, m]")
    if points.ndim != 2 or not points.is_floating_point() or points.is_meta:
        raise UsageError(f"points must be floats [n, m], got {points.dtype} {list(points.shape)}")
    given = points.detach().cpu().double().numpy()
    n, m = given.shape
    edge = np.broadcast_to(as_array("reference", reference), (m,))
    result = np.zeros((n, m))
    inside = np.flatnonzero((given < edge).all(1) & np.isfinite(given).all(1))
    if len(inside):
        # Of two equal points each would hide the other: as one point they have a gradient.
        unique, where = np.unique(given[inside], axis=0, return_inverse=True)
        best = np.flatnonzero(non_dominated_mask(unique, maximise=False).numpy())
        slopes = np.zeros_like(unique)
        slopes[best] = _slopes(unique[best], edge)
        result[inside] = slopes[where.reshape(-1)]
    return torch.from_numpy(result).to(points)


def _slopes(points: Floats, edge: Floats) -> Floats:
    """The gradient at different points of which none dominates another."""
    n, m = points.shape
    # One point only, since none dominates another: the volume is the way to the edge.
    if m == 1:
        return np.full((n, 1), -1.0)
    slopes = np.zeros((n, m))
    for j, i in np.ndindex(n, m):
        point, rest = points[j], np.arange(m) != i
        # Points beyond this facet along axis i do not reach it.
        covering = points[(points[:, i] <= point[i]) & (np.arange(n) != j)]
        clipped = np.maximum(covering, point)[:, rest]
        facet = float((edge - point)[rest].prod())
        covered = _volume(clipped, edge[rest]) if len(clipped) else 0.0
        # Rounding, or a sampled volume, may make the covered part a little too large.
        slopes[j, i] = -max(facet - covered, 0.0)
    return slopes


def _volume(points: Floats, edge: Floats) -> float:
    """The volume between points ``[n, k]``, to be small, and ``edge [k]``."""
    if points.shape[1] == 1:
        return float((edge - points).max())
    return float(hypervolume(points, edge, maximise=False))


def hypervolume_weights(losses: Tensor, reference: Tensor | list[float] | float) -> Tensor:
    """PHN-HVI's weights of losses, every row of norm 1 or 0.

    Losses are sorted into fronts (the non-dominated ones, those that are so without the first
    front, ...); within each front they are ``-dV/dlosses``, so dominated points are drawn
    forwards too. The reference is moved out to 1.1 times the largest loss of each task.

    Args:
        losses: ``[n, m]``.
        reference: One number, or one per task.

    Returns:
        ``[n, m]``, nowhere below 0.

    >>> hypervolume_weights(torch.tensor([[0.5, 1.5], [1.5, 0.5]]), 2.0)
    tensor([[0.4472, 0.8944],
            [0.8944, 0.4472]])
    """
    edge = torch.as_tensor(reference, dtype=torch.float64).expand(losses.shape[1])
    values = losses.detach().cpu().double()
    edge = torch.maximum(edge, 1.1 * values.amax(0))
    weights = torch.zeros_like(values)
    left = torch.arange(len(values))
    while len(left):
        best = non_dominated_mask(values[left], maximise=False)
        weights[left[best]] = -hypervolume_gradient(values[left[best]], edge)
        left = left[~best]
    norms = weights.norm(dim=1, keepdim=True)
    return torch.where(norms > 0, weights / norms, weights).to(losses)
