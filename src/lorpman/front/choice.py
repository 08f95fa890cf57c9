"""Choosing one of a front's points: bounds to keep, and one thing to do best within them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lorpman.errors import UsageError, check_kind, finite_number

if TYPE_CHECKING:
    from lorpman.front.front import Front

Utility = Callable[[dict[str, float]], float]
"""From the scores of a point, by task, to a number that is to be large."""


@dataclass(frozen=True, eq=False)
class Choice:
    """One point of a front."""

    alpha: Tensor
    """Its preference, ``[m]``."""
    scores: dict[str, float]
    """Its scores by task."""
    index: int
    """Its row in the front."""
    feasible: bool
    """False where no point keeps the bounds asked for, and this one breaks them least."""


def choose(
    front: "Front",
    at_least: Mapping[str, float],
    at_most: Mapping[str, float],
    best: str | None,
    knee: bool,
    target: Mapping[str, float] | None,
    utility: Utility | None,
) -> Choice:
    """The point that answers a demand.

    Args:
        front: The points.
        at_least: See :meth:`lorpman.front.front.Front.select`, as for the others.
        at_most: Bounds of tasks where less is better.
        best: The task whose score is to be best.
        knee: Whether the knee is wanted.
        target: Scores to come close to.
        utility: What is to be highest.

    Raises:
        UsageError: If the demand makes no sense.
    """
    goals = {} if target is None else target
    for name, wanted in (("at_least", at_least), ("at_most", at_most), ("target", goals)):
        check_kind(name, wanted, Mapping, "a mapping from tasks to scores")
    check_kind("knee", knee, bool, "True or False")
    widths = _widths(front)
    goal = _goal(front, widths, best, knee, target, utility)
    _check_direction(front, "at_least", at_least)
    _check_direction(front, "at_most", at_most)
    broken = _short_of(front, widths, {**at_least, **at_most}).clamp(min=0.0).sum(dim=1)
    # Among equals, the point with the best sum: none of the others can dominate it.
    worth = (front.scores / widths).sum(dim=1)
    # Lists are compared entry by entry: first the bounds, then the goal, then the sum.
    ranks = torch.stack([-broken, goal, worth], dim=1).tolist()
    index = max(range(len(front)), key=ranks.__getitem__)
    scores = dict(zip(front.tasks, front.scores[index].tolist(), strict=True))
    return Choice(front.alphas[index].clone(), scores, index, broken[index].item() == 0.0)


def _widths(front: "Front") -> Tensor:
    """Each task's range on the front ``[m]``, negative where a smaller score is better.

    Differences of scores divided by it are orientation-free, and of the same scale.
    """
    # Dominated points may lie far behind; they must not stretch the unit.
    best = front.scores[front.non_dominated_mask()]
    width = best.amax(dim=0) - best.amin(dim=0)
    width[width == 0.0] = 1.0  # a task that no preference changes: keep its own unit
    return width * front.signs


def _goal(
    front: "Front",
    widths: Tensor,
    best: str | None,
    knee: bool,
    target: Mapping[str, float] | None,
    utility: Utility | None,
) -> Tensor:
    """What is to be largest among the points that keep the bounds: ``[n]``."""
    asked = (best is not None) + knee + (target is not None) + (utility is not None)
    if asked != 1:
        fix = "one of best='task', knee=True, target={...} or utility=function"
        raise UsageError(f"select needs exactly {fix}, got {asked} of them")
    if best is not None:
        # Short of any fixed score: only the order of the points counts.
        return -_short_of(front, widths, {best: 0.0})[:, 0]
    if target is not None:
        if not target:
            raise UsageError("target names no task; pass target={'task': score}")
        return -_short_of(front, widths, target).norm(dim=1)
    if utility is None:
        # The plane through the extremes of the front is sum = const in these units.
        return (front.scores / widths).sum(dim=1)
    rows = (dict(zip(front.tasks, row, strict=True)) for row in front.scores.tolist())
    values = torch.tensor([float(utility(row)) for row in rows], dtype=torch.float64)
    if values.isnan().any():
        raise UsageError("utility must return a number for every point, got nan")
    return values


def _short_of(front: "Front", widths: Tensor, wanted: Mapping[str, float]) -> Tensor:
    """How far each point falls short of ``wanted``, in ranges of the front: ``[n, k]``."""
    for task, value in wanted.items():
        finite_number(f"the bound or target of '{task}'", value)
    columns = [front.column(task) for task in wanted]
    values = torch.tensor(list(wanted.values()), dtype=torch.float64)
    return (values - front.scores[:, columns]) / widths[columns]


def _check_direction(front: "Front", name: str, bounds: Mapping[str, float]) -> None:
    """Refuse a bound on the better side: no point would ever be turned away for that reason."""
    for task, bound in bounds.items():
        direction = front.direction(task)
        if name != direction.bound:
            fix = f"pass {direction.bound}={{'{task}': {bound}}}"
            raise UsageError(
                f"{name} cannot bound '{task}', where {direction.better} is better; {fix}"
            )
