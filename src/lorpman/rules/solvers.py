"""The small optimisation problems behind the balancers, in float64, each answer checked.

All take a Gram matrix ``K [m, m]`` of gradients, so their cost does not depend on the network.
"""

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]

# Matrices are scaled to trace 1, so that absolute tolerances mean the same for every network.
_GAP = 1e-7  # below this an answer counts as optimal
_RIDGE = 1e-10  # added to the eigenvalues, so that collinear gradients have one answer


class SolverFailed(ArithmeticError):
    """A small problem whose answer does not satisfy its own optimality conditions."""


def divided_by_trace(gram: Tensor) -> Tensor:
    """``K`` in float64, divided by its trace; a zero matrix stays zero.

    Args:
        gram: ``K``, ``[m, m]``.
    """
    gram = gram.detach().to("cpu", torch.float64)
    trace = float(gram.diagonal().sum())
    return gram / trace if trace > 0 else gram


def project_simplex(points: Tensor) -> Tensor:
    """The nearest point of the simplex to every row.

    Args:
        points: Any points, ``[..., m]``.

    Returns:
        Points of the simplex in the same shape.

    >>> project_simplex(torch.tensor([[2.0, 0.0], [0.5, 0.7]]))
    tensor([[1.0000, 0.0000],
            [0.4000, 0.6000]])
    """
    # The nearest point lowers all entries by one amount and cuts at zero; sorted, the entries that
    # stay positive are the first ones, and their number decides the amount.
    ordered = points.sort(-1, descending=True).values
    count = torch.arange(1, points.shape[-1] + 1, device=points.device)
    excess = (ordered.cumsum(-1) - 1) / count
    last = (ordered > excess).sum(-1, keepdim=True) - 1
    return (points - excess.gather(-1, last)).clamp_min(0)


def min_norm(gram: Tensor) -> Tensor:
    """Weights ``[m]`` of the shortest convex combination: ``min a^T K a`` on the simplex.

    ``min |R b|^2 + (1^T b - 1)^2`` over ``b >= 0``, with ``R^T R = K``, has the same direction
    (for a fixed direction the best length gives ``q / (1 + q)``, which grows with ``q``), so
    an active-set method for non-negative least squares answers exactly.

    Args:
        gram: ``K``, ``[m, m]``.

    Raises:
        SolverFailed: If the answer does not satisfy the optimality conditions.

    >>> min_norm(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))
    tensor([0.2000, 0.8000], dtype=torch.float64)
    """
    K = divided_by_trace(gram).numpy()
    m = len(K)
    # Without any gradient every point is a solution: the middle favours nobody.
    if m == 1 or not K.any():
        return torch.full((m,), 1 / m, dtype=torch.float64)
    # Not Cholesky, which fails where gradients are collinear or more than the parameters; rounding
    # may leave eigenvalues a little below zero.
    values, vectors = np.linalg.eigh(K)
    root = np.sqrt(values.clip(0))[:, None] * vectors.T
    stacked = np.vstack([root, np.ones(m)])
    weights = _nnls(stacked, np.eye(m + 1)[m])
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(m, 1 / m)
    if kkt_gap(K, weights) > _GAP:
        weights = _descend(K, weights)
    gap = kkt_gap(K, weights)
    # Looser than what was aimed at: a direction a little off the shortest does no harm.
    if gap > 1e-4:
        raise SolverFailed(f"the min-norm problem of {m} gradients is off by {gap:.1e} (KKT)")
    return torch.from_numpy(weights)


def kkt_gap(K: Floats, weights: Floats) -> float:
    """How far weights are from the min-norm problem's optimality conditions.

    Args:
        K: Inner products of gradients, ``[m, m]``.
        weights: ``a``, a point of the simplex, ``[m]``.

    Returns:
        The most by which ``(K a)_i >= a^T K a`` is broken; 0 at the optimum.
    """
    slope = K @ weights
    return float(weights @ slope - slope.min())


def _nnls(matrix: Floats, target: Floats) -> Floats:
    """``argmin |matrix b - target|`` over ``b >= 0``; zeros where the solver gives up."""
    from scipy.optimize import nnls

    try:
        return cast("Floats", nnls(matrix, target, maxiter=100 * matrix.shape[1])[0])
    except RuntimeError:
        return np.zeros(matrix.shape[1])


def _descend(K: Floats, weights: Floats, steps: int = 20_000) -> Floats:
    """Accelerated projected gradient with restarts, where the active-set method failed."""
    rate = 1 / max(float(np.linalg.eigvalsh(K)[-1]), 1e-300)
    ahead, momentum = weights, 1.0
    for _ in range(steps):
        slope = K @ ahead
        moved = project_simplex(torch.from_numpy(ahead - rate * slope)).numpy()
        # Momentum that points uphill is dropped.
        if slope @ (moved - weights) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - weights)
        weights, momentum = moved, following
        if kkt_gap(K, weights) < _GAP:
            break
    return weights


def nonnegative_qp(gram: Tensor, linear: Tensor) -> Tensor:
    """``argmin 1/2 x^T K x - linear^T x`` over ``x >= 0``, ``[m]``.

    It has a minimum whenever some ``v`` has ``<g_i, v> >= linear_i``; a tiny ridge makes it unique.

    Args:
        gram: ``K``, ``[m, m]``.
        linear: ``[m]``.

    Raises:
        SolverFailed: If the answer does not satisfy the optimality conditions.

    >>> nonnegative_qp(torch.eye(2), torch.tensor([1.25, -3.0])).round(decimals=6)
    tensor([1.2500, 0.0000], dtype=torch.float64)
    """
    trace = max(float(gram.diagonal().sum()), 1e-300)
    values, vectors = np.linalg.eigh(divided_by_trace(gram).numpy())
    root = np.sqrt(values.clip(0) + _RIDGE)
    target = vectors.T @ (linear.detach().to("cpu", torch.float64).numpy() / trace) / root
    matrix = root[:, None] * vectors.T
    answer = _nnls(matrix, target)
    slope = matrix.T @ (matrix @ answer - target)
    size = 1 + float(np.abs(answer).max()) + float(np.abs(target).max())
    worst = max(float(-slope.min()), float(np.abs(slope * (answer > 0)).max())) / size
    if not worst < 1e-5:
        raise SolverFailed(f"the non-negative QP of {len(answer)} variables is off by {worst:.1e}")
    return torch.from_numpy(answer)


def root_of_increasing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function crosses zero.

    Args:
        function: The function.
        low: The lower end of the bracket.
        high: The upper end.

    Returns:
        The crossing; the nearer end of the bracket if there is none inside.
    """
    from scipy.optimize import brentq

    if function(low) >= 0:
        return low
    if function(high) <= 0:
        return high
    return float(brentq(function, low, high, xtol=1e-12, rtol=1e-12))
