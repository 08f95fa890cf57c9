"""The linear programme of EPO search (Mahapatra and Rajan, ICML 2020), as pure functions."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lorpman.errors import UsageError

Floats = NDArray[np.float64]

# Below this non-uniformity the point counts as being on the ray of the preference.
_ON_THE_RAY = 1e-4
_SMALLEST_LOSS = 1e-12


def epo_weights(losses: Tensor, gram: Tensor, preference: Tensor) -> Tensor:
    """Weights ``[m]`` of the simplex that move ``losses [m]`` to the ray ``1 / preference``.

    Away from the ray the weights make the point fairer, with losses rising only where that is
    allowed (balance mode); on it they lower all losses (descent mode). EPO and PHN train with
    ``m`` times these weights.

    Args:
        losses: The losses at the present point, ``[m]``, none negative.
        gram: Inner products of the losses' gradients, ``[m, m]``.
        preference: A point of the simplex, ``[m]``.

    Returns:
        The weights; the preference itself where the programme has no solution.

    Raises:
        UsageError: If a loss is negative.

    >>> epo_weights(torch.ones(2), torch.eye(2), torch.tensor([0.8, 0.2]))
    tensor([1., 0.])
    """
    f, r = _numbers(losses), _numbers(preference)
    if (f < 0).any():
        raise UsageError(f"EPO needs losses that are not negative, got {f.tolist()}")
    # A corner asks for an infinite ratio of losses: as far as the tolerance goes is enough.
    f, r = f.clip(_SMALLEST_LOSS), r.clip(_ON_THE_RAY)
    C = _numbers(gram)
    # Only directions matter: a common scale keeps the solver's tolerances meaningful.
    C = C / max(float(np.trace(C)), np.finfo(np.float64).tiny)
    mu, a = non_uniformity(f, r)
    c = C @ a
    if mu > _ON_THE_RAY:
        weights = solve_on_simplex(c, C, _balance_bounds(f, r, c))
    else:
        # Descend without becoming less fair; where every direction is less fair, as little as can
        # be.
        lowest = min(float(c.max()), 0.0)
        weights = solve_on_simplex(C.sum(0), np.vstack([C, c]), np.append(np.zeros(len(f)), lowest))
    return torch.as_tensor(r / r.sum() if weights is None else weights).to(losses)


def non_uniformity(f: Floats, r: Floats) -> tuple[float, Floats]:
    """How far the weighted losses ``r * f`` are from uniform.

    Args:
        f: The losses, ``[m]``.
        r: The preference, ``[m]``.

    Returns:
        The divergence of their shares from ``1 / m``, and the adjustments ``[m]`` that lower it.
    """
    weighted = r * f
    share = (weighted / max(weighted.sum(), np.finfo(np.float64).tiny)).clip(1e-300)
    logs = np.log(len(f) * share)
    mu = float((share * logs).sum())
    return mu, r * (logs - mu)


def _balance_bounds(f: Floats, r: Floats, c: Floats) -> Floats:
    """The least ``C alpha`` for each loss: which ones may rise, and how much."""
    # No task's gradient makes the point fairer, so that no loss may rise for it.
    if not (c > 0).any():
        return np.zeros(len(f))
    # Losses whose own gradient makes it fairer may rise; the others no more than the direction
    # sum_i a_i gradient_i makes them.
    bounds = np.where(c > 0, -math.inf, c)
    weighted = r * f
    # The worst-off losses must not rise.
    bounds[weighted >= weighted.max() * (1 - 1e-12)] = 0.0
    return bounds


def solve_on_simplex(objective: Floats, rows: Floats, bounds: Floats) -> Floats | None:
    """The point of the simplex with the largest ``objective @ x`` where ``rows @ x >= bounds``.

    Args:
        objective: ``[m]``.
        rows: ``[k, m]``.
        bounds: ``[k]``; -inf where a row is not bounded.

    Returns:
        The point ``[m]``; None where no point keeps the bounds.
    """
    kept = np.isfinite(bounds)
    # A hair of slack: the answer often lies on a bound, which rounding would cut off.
    rows, bounds = rows[kept], bounds[kept] - 1e-12
    m = len(objective)
    if m == 1:
        return np.ones(1)
    if m == 2:
        return _on_an_interval(objective, rows, bounds)
    from scipy.optimize import linprog

    answer = linprog(
        -objective, A_ub=-rows, b_ub=-bounds, A_eq=np.ones((1, m)), b_eq=[1.0], bounds=(0, 1)
    )
    if not answer.success:
        return None
    x = answer.x.clip(0)
    return x / x.sum()


def _on_an_interval(objective: Floats, rows: Floats, bounds: Floats) -> Floats | None:
    """Two weights ``(t, 1 - t)``: every row bounds t from one side."""
    low, high = 0.0, 1.0
    for slope, room in zip(rows[:, 0] - rows[:, 1], bounds - rows[:, 1], strict=True):
        if abs(slope) < 1e-15:
            if room > 1e-12:
                return None
        elif slope > 0:
            low = max(low, room / slope)
        else:
            high = min(high, room / slope)
    if low > high + 1e-12:
        return None
    low = min(low, high)
    t = high if objective[0] >= objective[1] else low
    return np.array([t, 1 - t])


def _numbers(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().double().numpy()
