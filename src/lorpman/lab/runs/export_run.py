"""Taking a network out of a run: the file, and a card with its scores on both held-out splits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.front.evaluate import evaluate, scores_of
from lorpman.front.export import Exported, export, export_network
from lorpman.front.recalibration import recalibrate
from lorpman.lab.datasets.splits import Splits, batches
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.task import Task

_EXAMPLES = 32


@dataclass(frozen=True)
class Taken:
    """What was written, and what its card says about the run."""

    file: Exported
    card: dict[str, Any]


def take(
    spec: Spec,
    model: Manifold,
    splits: Splits,
    alpha: Tensor | None,
    to: Path,
    recalibrate_from: int = 0,
) -> Taken:
    """Write the network at ``alpha [m]`` (None: the whole front) of a run into ``to``.

    With ``recalibrate_from``, so many training batches give BatchNorm statistics of its own.
    """
    tasks = spec.tasks()
    example, names = _example(splits), [task.name for task in tasks]
    card: dict[str, Any] = {**spec.described(), "data": splits.note or "official splits"}
    if alpha is None:
        card["front"] = _front(model, tasks, splits)
        return Taken(export(model, None, to, example, outputs=names, card=card), card)
    network = model.solution(alpha).eval()
    card["scores"] = _scores(network, tasks, splits)
    if recalibrate_from:
        card["recalibrated"] = _recalibrated(
            network, spec, splits, recalibrate_from, card["scores"]
        )
        card["scores"] = _scores(network, tasks, splits)
    return Taken(export_network(network, alpha, to, example, names, card), card)


def _example(splits: Splits) -> Any:
    """Real inputs, to trace and to check with."""
    return next(iter(batches(splits.test, _EXAMPLES)))[0]


def _scores(network: nn.Module, tasks: list[Task], splits: Splits) -> dict[str, dict[str, float]]:
    found = {}
    with torch.no_grad():
        for split in ("validation", "test"):
            loader = batches(getattr(splits, split), EVALUATION_BATCH)
            ((scores, _),) = scores_of([network], tasks, loader)
            found[split] = _by_task(tasks, scores)
    return found


def _by_task(tasks: list[Task], scores: Tensor) -> dict[str, float]:
    return {task.name: float(score) for task, score in zip(tasks, scores, strict=True)}


def _recalibrated(
    network: nn.Module, spec: Spec, splits: Splits, count: int, before: Any
) -> dict[str, Any]:
    order = torch.Generator().manual_seed(spec.seed)
    loader = batches(splits.train, spec.training.batch_size, shuffle=True, generator=order)
    layers = recalibrate(network, loader, count)
    if layers == 0:
        raise UsageError("--recalibrate: the network has no BatchNorm; leave the option out")
    return {"layers": layers, "batches": min(count, len(loader)), "scores_before": before}


def _front(model: Manifold, tasks: list[Task], splits: Splits) -> list[dict[str, Any]]:
    front = evaluate(model, tasks, batches(splits.test, EVALUATION_BATCH))
    return [
        {"alpha": alpha.tolist(), "test": _by_task(tasks, scores)}
        for alpha, scores in zip(front.alphas, front.scores, strict=True)
    ]
