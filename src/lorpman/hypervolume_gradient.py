"""How the hypervolume changes with each loss: the areas of the faces that a point shows."""

import torch
from torch import Tensor

from lorpman.hypervolume import hypervolume


def hypervolume_gradient(losses: Tensor, reference: Tensor) -> Tensor:
    """``d HV / d losses``, ``[n, m]``, for ``losses [n, m]`` below ``reference [m]``; at most 0.

    Raising loss i of a point takes away the slice of its face towards i: what the point
    dominates in the other losses, and no point with a smaller loss i does. Dominated
    points, and those beyond the reference, get zero; equal points share.

    >>> points = torch.tensor([[0.5, 1.5], [1.5, 0.5]])
    >>> hypervolume_gradient(points, torch.tensor([2.0, 2.0]))
    tensor([[-0.5000, -1.0000],
            [-1.0000, -0.5000]])
    """
    points, which, counts = losses.detach().unique(dim=0, return_inverse=True, return_counts=True)
    points, limit = points.to("cpu", torch.float64), reference.detach().to("cpu", torch.float64)
    inside = (points < limit).all(1)
    gradient = torch.zeros_like(points)
    for j in inside.nonzero().flatten().tolist():
        others = points[inside & (torch.arange(len(points)) != j)]
        for i in range(points.shape[1]):
            gradient[j, i] = -_face(points[j], others, limit, i)
    shared = gradient / counts.to("cpu")[:, None]
    return shared[which.cpu()].to(losses)


def _face(point: Tensor, others: Tensor, limit: Tensor, i: int) -> float:
    """The size of the face of ``point`` towards loss ``i`` that no better point covers."""
    rest = [k for k in range(len(point)) if k != i]
    if not rest:
        return 0.0 if len(others) and bool((others <= point).any()) else 1.0
    before = others[others[:, i] <= point[i]][:, rest]
    together = torch.cat([before, point[rest][None]])
    covered = float(hypervolume(before, limit[rest], maximise=False)) if len(before) else 0.0
    return max(float(hypervolume(together, limit[rest], maximise=False)) - covered, 0.0)
