"""Is one run as good as retraining for every preference? Regret, reach and order against it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.front.order import Order, order

if TYPE_CHECKING:
    from lorpman.front.front import Front

NO_TRADE_OFF = "These tasks do not compete: one network serves all preferences."
"""What is said where :func:`compete` is False for retrained networks."""
# Two preferences are the same if no weight differs by more.
_SAME_PREFERENCE = 1e-4
# A lattice of three tasks has no centre; its points nearest to it do as well.
_NEAR_CENTRE = 0.1
# What a corner must gain over equal weights before we say that tasks compete: less than this is
# what another seed changes too.
_LEAST_LOSS_GAIN = 0.02
_LEAST_SCORE_GAIN = 0.005


@dataclass(frozen=True)
class Control:
    """A front beside networks that were each trained for one preference alone."""

    regret: float | None
    """Mean over the preferences of the relative excess of the weighted test loss; below 0 the one
    run is better than retraining. None where a retrained loss is not positive."""
    reach: float | None
    """Mean over the tasks of the gain in score at the task's own corner; at 0 or above nothing is
    given up at the ends. None if no network was retrained for a corner."""
    order: Order
    """Whether more weight gives a better score, on the front."""
    order_on_losses: Order
    """Whether more weight gives a lower test loss."""
    regrets: tuple[float, ...]
    """The relative excess at each preference of the retrained networks; empty without regret."""
    reaches: tuple[float | None, ...]
    """The gain in score at each task's own corner."""

    def to_json(self) -> dict[str, Any]:
        """The numbers as files hold them."""
        orders = {
            name: {
                "correlation": value.correlation,
                "correlations": value.correlations,
                "violations": value.violations,
                "pairs": value.pairs,
            }
            for name, value in (("order", self.order), ("order_on_losses", self.order_on_losses))
        }
        return {**asdict(self), **orders}


def control(front: "Front", retrained: "Front") -> Control:
    """Compare a front with retrained networks, at their preferences.

    ``regret = mean_j (L_j - R_j) / R_j`` with ``L_j = sum_i alpha_ji f_i`` of the front and
    ``R_j`` of the network retrained for ``alpha_j``, both on the same data.

    Args:
        front: Of the one run; it must hold every preference of ``retrained``.
        retrained: One network per preference.

    Returns:
        Regret, reach and order, with their parts.

    Raises:
        UsageError: If the two are of different tasks, or lack losses or preferences.
    """
    if not front.has_tasks_of(retrained):
        raise UsageError(
            f"the two fronts are of different tasks: {', '.join(front.tasks)} and "
            f"{', '.join(retrained.tasks)}; compare runs of one problem"
        )
    if front.losses is None or retrained.losses is None:
        raise UsageError("control needs the losses of both fronts; evaluate them again")
    rows = [_row_at(front, alpha) for alpha in retrained.alphas]
    weights = retrained.alphas.double()
    ours = (weights * front.losses[rows]).sum(1)
    theirs = (weights * retrained.losses).sum(1)
    # Losses of analytic problems may be zero or negative: there is nothing to be relative to.
    regrets = (ours - theirs) / theirs if bool((theirs > 0).all()) else None
    reaches = tuple(_reach(front, retrained, rows, task) for task in range(len(front.tasks)))
    known = [value for value in reaches if value is not None]
    return Control(
        regret=None if regrets is None else float(regrets.mean()),
        reach=sum(known) / len(known) if known else None,
        order=front.order(),
        order_on_losses=order(front.alphas, -front.losses),
        regrets=() if regrets is None else tuple(regrets.tolist()),
        reaches=reaches,
    )


def compete(retrained: Sequence["Front"]) -> bool | None:
    """Whether there is a trade-off: whether training for one task alone gains anything.

    It does if, in the mean over seeds, a task at its own corner has a test loss at least 2% lower,
    or a score at least 0.5% better, than at equal weights.

    Args:
        retrained: Networks that were each trained for one preference, with one seed or several. Of
            other fronts, the answer holds for the front, not for its tasks: one that does not
            reach its corners shows no trade-off either.

    Returns:
        False where one network serves all preferences; None where corners or centre are missing.

    >>> from lorpman.front.front import Front
    >>> alphas, scores = torch.tensor([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]]), torch.ones(3, 2)
    >>> compete([Front(alphas, scores, ("a", "b"), (True, True), (0.0, 0.0))])
    False
    """
    tasks = range(len(retrained[0].tasks))
    gains = [[_corner_gains(front, task) for front in retrained] for task in tasks]
    if any(gain is None for of_task in gains for gain in of_task):
        return None
    means = [torch.tensor(of_task, dtype=torch.float64).mean(0) for of_task in gains]
    return any(
        loss >= _LEAST_LOSS_GAIN or score >= _LEAST_SCORE_GAIN
        for loss, score in (mean.tolist() for mean in means)
    )


def _corner_gains(front: "Front", task: int) -> tuple[float, float] | None:
    """How much lower the loss, and better the score, of a task is at its corner than at the centre,
    relative to the centre."""
    m = len(front.tasks)
    corner = _find(front, torch.eye(m)[task])
    centre = _find(front, torch.full((m,), 1 / m), _NEAR_CENTRE)
    if corner is None or centre is None:
        return None
    gain = float(front.gains[corner, task] - front.gains[centre, task])
    scores = gain / max(abs(float(front.scores[centre, task])), 1e-12)
    if front.losses is None:
        return 0.0, scores
    before, after = float(front.losses[centre, task]), float(front.losses[corner, task])
    return (before - after) / max(abs(before), 1e-12), scores


def _find(front: "Front", alpha: Tensor, within: float = _SAME_PREFERENCE) -> int | None:
    """Where ``front`` has the preference ``alpha [m]``, or the nearest one, if it is near."""
    distances = (front.alphas - alpha).abs().amax(1)
    nearest = int(distances.argmin())
    return nearest if distances[nearest] <= within else None


def _row_at(front: "Front", alpha: Tensor) -> int:
    """Where ``front`` has the preference ``alpha [m]``, which it must."""
    row = _find(front, alpha)
    if row is None:
        weights = ", ".join(f"{weight:.4g}" for weight in alpha.tolist())
        raise UsageError(
            f"the front has no point at preference ({weights}), where a network was retrained; "
            "evaluate it at the retrained front's alphas"
        )
    return row


def _reach(front: "Front", retrained: "Front", rows: list[int], task: int) -> float | None:
    """What the front gains in the score of ``task`` where all weight is on it."""
    corner = _find(retrained, torch.eye(len(front.tasks))[task])
    if corner is None:
        return None
    return float(front.gains[rows[corner], task] - retrained.gains[corner, task])
