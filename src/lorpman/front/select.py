"""Choosing a point of a continuous front: the grid first, then a search between its points."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lorpman.errors import whole_number
from lorpman.front.choice import Choice, Utility
from lorpman.front.evaluate import evaluate
from lorpman.front.front import Front
from lorpman.manifold.base import Manifold
from lorpman.preference import Fixed
from lorpman.task import Task

# The search ends when a move would change no weight by more than this.
_FINEST = 1e-3
# Above this many, a random part of the directions is tried in each round.
_DIRECTIONS = 16


@dataclass(frozen=True, eq=False)
class Selection:
    """A choice, and what it cost to find it."""

    choice: Choice
    """The preference, its scores on the data searched with, and whether it keeps the bounds."""
    front: Front
    """Every preference that was scored: the grid and what the search added to it."""
    evaluations: int
    """How many networks were scored, those of the grid included."""
    refined: bool
    """False where the manifold has a finite number of members, or no search was asked for."""


def select(
    model: Manifold,
    tasks: Sequence[Task],
    loader: Iterable[Any],
    *,
    at_least: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
    best: str | None = None,
    knee: bool = False,
    target: Mapping[str, float] | None = None,
    utility: Utility | None = None,
    evaluations: int = 40,
) -> Selection:
    """The preference that answers a demand best on some data.

    The manifold's own preferences are scored first; then a pattern search moves the best of them
    over the simplex, with steps that halve until none of them helps. Choose on validation data
    and report on test data: a choice is a fit to the data it was made on.

    Args:
        model: The manifold.
        tasks: Its m tasks.
        loader: Yields batches ``(x, y)``, and can be iterated more than once.
        at_least: As for :meth:`lorpman.front.front.Front.select`, like the four that follow.
        at_most: Bounds of tasks where less is better.
        best: The task whose score is to be best.
        knee: The point farthest out from the plane through the extremes.
        target: Scores of some tasks; the closest point is chosen.
        utility: A function of a point's scores by task; its highest value is chosen.
        evaluations: The most networks that are scored beyond the manifold's own preferences.

    Returns:
        The choice, and what it cost.

    Raises:
        UsageError: If ``evaluations`` is negative, or the demand makes no sense.
    """
    whole_number("evaluations", evaluations, least=0)
    demand: dict[str, Any] = {
        "at_least": at_least,
        "at_most": at_most,
        "best": best,
        "knee": knee,
        "target": target,
        "utility": utility,
    }
    front = evaluate(model, tasks, loader)
    choice = front.select(**demand)
    # Between the members of a finite front there is nothing to search.
    if evaluations == 0 or model.num_tasks == 1 or is_finite(model):
        return Selection(choice, front, len(front), False)
    # The same demand on the same data gives the same answer.
    generator = torch.Generator().manual_seed(0)
    width, left = _spacing(front.alphas), evaluations
    while width >= _FINEST and left > 0:
        around = _neighbours(choice.alpha, width, generator)[:left]
        left -= len(around)
        known = len(front)
        front = _joined(front, evaluate(model, tasks, loader, around))
        choice = front.select(**demand)
        # No neighbour was better: look closer.
        if choice.index < known:
            width /= 2
    return Selection(choice, front, len(front), True)


def is_finite(model: Manifold) -> bool:
    """Whether the manifold is a set of members rather than a continuous family.

    Args:
        model: The manifold.
    """
    # By how it draws preferences, and not by its class: finite manifolds draw those of their
    # members.
    return isinstance(model.sampler(1.0), Fixed)


def _spacing(alphas: Tensor) -> float:
    """Half the way to the nearest neighbour, for a typical point of the grid."""
    if len(alphas) < 2:
        return 0.25
    # No point is its own neighbour: no two preferences are 2 apart.
    gaps = torch.cdist(alphas, alphas, p=torch.inf) + torch.eye(len(alphas)) * 2
    return min(0.25, gaps.amin(1).median().item() / 2)


def _neighbours(alpha: Tensor, width: float, generator: torch.Generator) -> Tensor:
    """Preferences ``[k, m]`` around ``alpha [m]``: weight moved to and from every task.

    A move changes the largest weight by ``width``, unless it would leave the simplex.
    """
    corners = torch.eye(len(alpha), dtype=torch.float64)
    alpha = alpha.double()
    moves = corners - alpha
    length = moves.abs().amax(1, keepdim=True).clamp_min(1e-12)
    moves = torch.cat([moves, -moves]) * (width / torch.cat([length, length]))
    # For two tasks, away from one is towards the other.
    moves = moves[:2] if len(alpha) == 2 else moves
    if len(moves) > _DIRECTIONS:
        moves = moves[torch.randperm(len(moves), generator=generator)[:_DIRECTIONS]]
    moved = (alpha + moves).clamp_min(0.0)
    moved = moved / moved.sum(1, keepdim=True)
    # A move that the border of the simplex cuts short leads back to where it began.
    changed = (moved - alpha).abs().amax(1) > width / 100
    return moved[changed].float()


def _joined(front: Front, more: Front) -> Front:
    """The points of both fronts, which have the same tasks."""
    assert front.losses is not None
    assert more.losses is not None
    return replace(
        front,
        alphas=torch.cat([front.alphas, more.alphas]),
        scores=torch.cat([front.scores, more.scores]),
        losses=torch.cat([front.losses, more.losses]),
    )
