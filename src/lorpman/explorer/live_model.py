"""A model that was trained in a loop of one's own, as the page sees it."""

from collections.abc import Sequence
from typing import Any

from lorpman.explorer.opened_run import OpenedRun, Origin
from lorpman.explorer.shown_input import Show
from lorpman.front.evaluate import evaluate
from lorpman.front.select import is_finite
from lorpman.lab.datasets.splits import Splits, batches
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.manifold.base import Manifold
from lorpman.task import Task, check_tasks


def open_model(
    model: Manifold,
    tasks: Sequence[Task],
    data: Any,
    *,
    name: str | None = None,
    show: Show | None = None,
) -> OpenedRun:
    """Look at a manifold that no run directory holds; it is scored now, on all of ``data``.

    Args:
        model: The manifold.
        tasks: Its m tasks.
        data: What it is scored on, best held out from training: what a split of ``lp.Splits``
            may be, or ``lp.Splits`` themselves.
        name: What the page calls it; by default its class.
        show: How one input is shown; None for the usual way.

    Returns:
        The model as the page shows a run.

    Raises:
        UsageError: If model, tasks and data do not fit together.
    """
    check_tasks(tasks, model.num_tasks)
    splits = data if isinstance(data, Splits) else Splits(train=data, validation=data, test=data)
    method = type(model.innermost).__name__
    key, title = name or "model", name or method.lower()
    kind = "continuous"
    if is_finite(model):
        kind = "discrete" if len(model.preferences()) > 1 else "single"
    front = evaluate(model, tasks, batches(splits.test, EVALUATION_BATCH), label=title)
    return OpenedRun(
        key=key,
        path=None,
        spec=None,
        origin=Origin(key, "", method, f"a {method} that was trained elsewhere", kind, title),
        tasks=list(tasks),
        show=show,
        front=front,
        epochs=[],
        description={"parameters": model.num_parameters()},
        model=model,
        splits=splits,
        why_not_live="",
    )
