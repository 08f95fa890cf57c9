"""Exporting from a run: the file, and a card with scores on both held-out splits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.front.evaluate import evaluate, scores_of
from lorpman.front.export import Exported, export, export_network
from lorpman.front.recalibration import recalibrate
from lorpman.lab.datasets.process_shares import shared_batches
from lorpman.lab.datasets.splits import Splits, batches
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.task import Task

# Inputs that an exporter traces the network with, and that the written file is checked with.
_EXAMPLES = 32


@dataclass(frozen=True)
class ExportedFromRun:
    """What was written, and what its card says about the run."""

    file: Exported
    """What was written, and how it was checked."""
    card: dict[str, Any]
    """Settings, data and scores, as JSON."""


def export_from_run(
    spec: Spec,
    model: Manifold,
    splits: Splits,
    alpha: Tensor | None,
    to: Path,
    recalibrate_from: int = 0,
) -> ExportedFromRun:
    """Write the network of a run at one preference, or its whole front, into a file.

    Args:
        spec: What the run is.
        model: Its manifold with the trained weights.
        splits: Its data; both held-out splits are scored.
        alpha: The preference ``[m]``; None for the whole front.
        to: The file; its ending decides the format.
        recalibrate_from: Training batches from which BatchNorm gets statistics of this preference
            alone; 0 keeps those of the run, which all preferences share.

    Returns:
        What was written, and what its card says.

    Raises:
        UsageError: If the file cannot be written so, or there is no BatchNorm to recalibrate.
    """
    tasks = spec.tasks()
    example, names = _example(splits), [task.name for task in tasks]
    card: dict[str, Any] = {**spec.described(), "data": splits.note or "official splits"}
    if alpha is None:
        card["front"] = _describe_front(model, tasks, splits)
        return ExportedFromRun(export(model, None, to, example, outputs=names, card=card), card)
    network = model.solution(alpha).eval()
    card["scores"] = _scores(network, tasks, splits, alpha)
    if recalibrate_from:
        before = card["scores"]
        card["recalibrated"] = _recalibrate(network, spec, splits, recalibrate_from, before)
        card["scores"] = _scores(network, tasks, splits, alpha)
    return ExportedFromRun(export_network(network, alpha, to, example, names, card), card)


def _example(splits: Splits) -> Any:
    """Real inputs, to trace and to check with."""
    return next(iter(batches(splits.test, _EXAMPLES)))[0]


def _scores(
    network: nn.Module, tasks: list[Task], splits: Splits, alpha: Tensor
) -> dict[str, dict[str, float]]:
    """The scores of a network, by split and then by task."""
    by_split = {}
    with torch.no_grad():
        for split in ("validation", "test"):
            loader = batches(getattr(splits, split), EVALUATION_BATCH)
            ((scores, _),) = scores_of([network], tasks, loader, alpha[None])
            by_split[split] = _by_task(tasks, scores)
    return by_split


def _by_task(tasks: list[Task], scores: Tensor) -> dict[str, float]:
    return {task.name: float(score) for task, score in zip(tasks, scores, strict=True)}


def _recalibrate(
    network: nn.Module, spec: Spec, splits: Splits, count: int, before: Any
) -> dict[str, Any]:
    """Give ``network`` statistics of its own, in place; what the card says about it."""
    order = torch.Generator().manual_seed(spec.seed)
    loader = shared_batches(splits.train, spec.training.batch_size, order)
    layers = recalibrate(network, loader, count)
    if layers == 0:
        raise UsageError("--recalibrate: the network has no BatchNorm; leave the option out")
    return {"layers": layers, "batches": min(count, len(loader)), "scores_before": before}


def _describe_front(model: Manifold, tasks: list[Task], splits: Splits) -> list[dict[str, Any]]:
    """Preferences and test scores of the whole front."""
    front = evaluate(model, tasks, batches(splits.test, EVALUATION_BATCH))
    return [
        {"alpha": alpha.tolist(), "test": _by_task(tasks, scores)}
        for alpha, scores in zip(front.alphas, front.scores, strict=True)
    ]
