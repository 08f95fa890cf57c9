"""The linear programs of EPO (Mahapatra and Rajan, ICML 2020), as pure functions."""

import math

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.rules.solvers import scaled

_BALANCED = 1e-4
_SMALLEST = 1e-12


def epo_weights(losses: Tensor, gram: Tensor, preference: Tensor) -> Tensor:
    """Weights of the simplex for the tasks' gradients, that lead to the point of the front where
    ``preference_i losses_i`` is the same for every task: big preference, low loss.

    ``[m]``, ``[m, m]``, ``[m]`` to ``[m]``. Away from that ray the direction balances, even if
    some loss rises; on it, it descends. Where the program has no answer: the preference itself.
    EPO trains with ``m`` times these weights.

    >>> epo_weights(torch.ones(2), torch.eye(2), torch.tensor([0.8, 0.2]))
    tensor([1., 0.], dtype=torch.float64)
    """
    losses = losses.detach().to("cpu", torch.float64)
    if (losses < 0).any():
        raise UsageError(
            f"EPO needs losses of at least 0, found {float(losses.min()):.4g}; add a constant to "
            "that task's loss"
        )
    losses = losses.clamp_min(_SMALLEST)
    r = preference.detach().to("cpu", torch.float64).clamp_min(_BALANCED)
    C, m = scaled(gram), len(losses)
    uneven, anchor = non_uniformity(losses, r)
    c = C @ anchor
    if uneven > _BALANCED:
        bounds = _balance_bounds(c, r * losses)
        solved = _program(c, C, bounds)
    else:
        rows = torch.cat([C, c[None]])
        bounds = torch.cat([torch.zeros(m, dtype=torch.float64), c.max().clamp_max(0)[None]])
        solved = _program(C.sum(0), rows, bounds)
    return r / r.sum() if solved is None else solved


def non_uniformity(losses: Tensor, preference: Tensor) -> tuple[float, Tensor]:
    """``mu``, zero where ``preference_i losses_i`` are all equal, and its anchor direction ``a``.

    >>> uneven, anchor = non_uniformity(torch.ones(2), torch.tensor([0.8, 0.2]))
    >>> round(uneven, 5), anchor
    (0.19274, tensor([ 0.2218, -0.2218]))
    """
    weighted = preference * losses
    share = weighted / weighted.sum()
    logs = (len(losses) * share).log()
    mu = (share * logs).sum()
    return float(mu), preference * (logs - mu)


def _balance_bounds(c: Tensor, weighted: Tensor) -> Tensor:
    """How far each loss may rise while balancing; the worst may not."""
    if not (c > 0).any():
        return torch.zeros_like(c)
    bounds = torch.where(c > 0, -math.inf, c)
    bounds[weighted >= weighted.max() * (1 - 1e-12)] = 0.0
    return bounds


def _program(objective: Tensor, rows: Tensor, bounds: Tensor) -> Tensor | None:
    """``max objective^T a`` over the simplex with ``rows a >= bounds``; None if there is none."""
    finite = torch.isfinite(bounds)
    # A hair of slack: the answer often lies on a bound, which rounding would cut off.
    rows, bounds = rows[finite], bounds[finite] - 1e-12
    if len(objective) == 2:
        return _interval(objective, rows, bounds)
    from scipy.optimize import linprog

    answer = linprog(
        -objective.numpy(),
        A_ub=-rows.numpy(),
        b_ub=-bounds.numpy(),
        A_eq=torch.ones(1, len(objective), dtype=torch.float64).numpy(),
        b_eq=[1.0],
        bounds=(0, 1),
        method="highs",
    )
    if answer.x is None:
        return None
    weights = torch.from_numpy(answer.x).clamp_min(0)
    return weights / weights.sum()


def _interval(objective: Tensor, rows: Tensor, bounds: Tensor) -> Tensor | None:
    """Two tasks, ``a = (t, 1 - t)``: every row bounds ``t`` from one side."""
    low, high = 0.0, 1.0
    for (first, second), bound in zip(rows.tolist(), bounds.tolist(), strict=True):
        slope, least = first - second, bound - second
        if slope > 0:
            low = max(low, least / slope)
        elif slope < 0:
            high = min(high, least / slope)
        elif least > 0:
            return None
    if low > high:
        return None
    t = high if objective[0] > objective[1] else low
    return torch.tensor([t, 1 - t], dtype=torch.float64)
