"""What page and report say about retraining: is one run as good, and is there a trade-off?"""

from collections.abc import Sequence
from typing import Any

from lorpman.errors import UsageError
from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.control import NO_TRADE_OFF, compete
from lorpman.front.evaluate import evaluate
from lorpman.front.front import Front
from lorpman.lab.beside_retraining import (
    CONTROL_FRONT,
    RETRAIN,
    control_preferences,
    kept_control,
)
from lorpman.lab.datasets.splits import batches
from lorpman.lab.runs.evaluation import EVALUATION_BATCH

_TOLD = ("regret", "reach", "order_on_losses")


def explain_control(runs: Sequence[OpenedRun]) -> list[str]:
    """Sentences about opened runs beside the retrained networks that are opened with them.

    A run that is not beside any tells what ``lorpman compare`` has kept about it.

    Args:
        runs: Runs of the same tasks.
    """
    retrained = [run for run in runs if run.origin.method == RETRAIN]
    said = []
    for run in runs:
        if run.origin.kind != "continuous":
            continue
        beside = _same_seed(run, retrained)
        found = _kept(run) if beside is None else _measured(run, beside)
        if found is not None and any(found[key] is not None for key in _TOLD):
            # With one run, everybody knows which.
            said.append(_sentence(found, f"{run.title}: " if len(runs) > 1 else ""))
        if beside is None and found is not None and found["compete"] is False:
            said.append(NO_TRADE_OFF)
    if retrained and compete([run.front for run in retrained]) is False:
        said.append(NO_TRADE_OFF)
    return list(dict.fromkeys(said))


def _same_seed(run: OpenedRun, retrained: Sequence[OpenedRun]) -> OpenedRun | None:
    """The retrained networks to compare a run with: those of its own seed, if there are any."""
    seed = run.description.get("seed")
    same = [other for other in retrained if other.description.get("seed") == seed]
    return next(iter([*same, *retrained]), None)


def _kept(run: OpenedRun) -> dict[str, Any] | None:
    try:
        return None if run.path is None else kept_control(run.path)
    except UsageError:
        return None


def _measured(run: OpenedRun, retrained: OpenedRun) -> dict[str, Any] | None:
    """The numbers of a run beside retrained networks; None where it cannot be scored there."""
    front = _front_at(run, retrained.front)
    if front is None:
        return None
    try:
        control = front.control(retrained.front)
    except UsageError:  # an old front without losses
        return None
    return {
        "regret": control.regret,
        "reach": control.reach,
        "order_on_losses": control.order_on_losses.correlation,
        "networks": len(retrained.front),
        "compete": None,
    }


def _front_at(run: OpenedRun, retrained: Front) -> Front | None:
    """The test front of a run at the retrained preferences: as kept, or scored now."""
    alphas = control_preferences(retrained)
    if run.path is not None and (run.path / CONTROL_FRONT).is_file():
        try:
            kept = Front.load(run.path / CONTROL_FRONT)
        except UsageError:
            return None
        if kept.alphas.shape == alphas.shape and kept.alphas.allclose(alphas, atol=1e-5):
            return kept
    if run.model is None or run.splits is None:
        return None
    return evaluate(run.model, run.tasks, batches(run.splits.test, EVALUATION_BATCH), alphas)


def _sentence(found: dict[str, Any], which: str) -> str:
    """Regret, reach and order, in words."""
    parts = []
    regret, reach, order = (found[key] for key in _TOLD)
    if regret is not None:
        parts.append(
            f"the weighted loss is {abs(regret):.1%} {'lower' if regret < 0 else 'higher'} than "
            "theirs in the mean (regret)"
        )
    if reach is not None:
        parts.append(
            f"a task that gets all weight scores {abs(reach):.4f} "
            f"{'worse' if reach < 0 else 'better'} (reach)"
        )
    if order is not None:
        parts.append(f"more weight lowers a task's loss with a rank correlation of {order:.2f}")
    count = f"{found['networks']:.0f} networks" if found["networks"] else "networks"
    return f"{which}Beside {count} that were each retrained for one preference, {'; '.join(parts)}."
