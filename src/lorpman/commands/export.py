"""``lorpman export``: a network of a run as a file that needs no lorpman."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorpman.commands.options import DataDirectory, RunDirectory, read_alpha
from lorpman.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from lorpman.data.base import Splits
    from lorpman.manifold.base import Manifold
    from lorpman.runs import Spec
    from lorpman.task import Task

_EXAMPLES = 32


def export(
    run: RunDirectory,
    alpha: Annotated[
        str, typer.Option(metavar="A,B,...", help="One weight per task, or: any (.onnx, .pt2).")
    ],
    to: Annotated[Path, typer.Option(metavar="FILE", help=".safetensors, .onnx or .pt2")],
    recalibrate: Annotated[
        int, typer.Option(metavar="N", help="Estimate BatchNorm anew from N training batches.")
    ] = 0,
    data: DataDirectory = None,
) -> None:
    """Write the network at a preference to a file, with a card that says what it is."""
    from lorpman.export import export as export_model
    from lorpman.export import export_network
    from lorpman.runs import data_root, open_run

    spec, model = open_run(run)
    tasks = spec.tasks()
    chosen = None if alpha == "any" else read_alpha(alpha, len(tasks))
    if recalibrate < 0 or (recalibrate and chosen is None):
        raise UsageError("--recalibrate expects a number of batches and one preference in --alpha")
    splits = spec.load(data_root(data))
    example, names = _example(splits), [task.name for task in tasks]
    card: dict[str, Any] = {**spec.identity(), "data": splits.note or "official splits"}
    if chosen is None:
        card["front"] = _front(model, tasks, splits)
        written = export_model(model, None, to, example, outputs=names, card=card)
    else:
        network = model.solution(chosen).eval()
        card["scores"] = _scores(network, tasks, splits)
        if recalibrate:
            card["recalibrated"] = _recalibrated(network, spec, splits, recalibrate, card["scores"])
            card["scores"] = _scores(network, tasks, splits)
        written = export_network(network, chosen, to, example, names, card)
    _report(card)
    if written.difference is not None:
        batches = "any batch size" if written.any_batch_size else "this batch size only"
        typer.echo(f"checked     differs from PyTorch by {written.difference:.1g}; {batches}")
    typer.echo(f"file        {written.path}")
    typer.echo(f"card        {written.card}")


def _report(card: dict[str, Any]) -> None:
    if "recalibrated" in card:
        before = card["recalibrated"]
        typer.echo(f"BatchNorm   {before['layers']} layers from {before['batches']} batches")
        typer.echo(f"before      {_shown(before['scores_before']['test'])}")
    if "scores" in card:
        typer.echo(f"test        {_shown(card['scores']['test'])}")


def _shown(scores: dict[str, float]) -> str:
    return "  ".join(f"{task} {score:.4f}" for task, score in scores.items())


def _example(splits: "Splits") -> Any:
    """Real inputs, to trace and to check with."""
    from lorpman.data.base import batches

    return next(iter(batches(splits.test, _EXAMPLES)))[0]


def _scores(
    network: "nn.Module", tasks: "list[Task]", splits: "Splits"
) -> dict[str, dict[str, float]]:
    import torch

    from lorpman.data.base import batches
    from lorpman.evaluate import scores_of
    from lorpman.recipe import EVALUATION_BATCH

    found = {}
    with torch.no_grad():
        for split in ("validation", "test"):
            loader = batches(getattr(splits, split), EVALUATION_BATCH)
            ((scores, _),) = scores_of([network], tasks, loader)
            found[split] = _by_task(tasks, scores)
    return found


def _by_task(tasks: "list[Task]", scores: "Tensor") -> dict[str, float]:
    return {task.name: float(score) for task, score in zip(tasks, scores, strict=True)}


def _recalibrated(
    network: "nn.Module", spec: "Spec", splits: "Splits", count: int, before: Any
) -> dict[str, Any]:
    import torch

    from lorpman.data.base import batches
    from lorpman.export import recalibrate

    order = torch.Generator().manual_seed(spec.seed)
    loader = batches(splits.train, spec.training.batch_size, shuffle=True, generator=order)
    layers = recalibrate(network, loader, count)
    if layers == 0:
        raise UsageError("--recalibrate: the network has no BatchNorm; leave the option out")
    return {"layers": layers, "batches": min(count, len(loader)), "scores_before": before}


def _front(model: "Manifold", tasks: "list[Task]", splits: "Splits") -> list[dict[str, Any]]:
    from lorpman.data.base import batches
    from lorpman.evaluate import evaluate
    from lorpman.recipe import EVALUATION_BATCH

    front = evaluate(model, tasks, batches(splits.test, EVALUATION_BATCH))
    return [
        {"alpha": alpha.tolist(), "test": _by_task(tasks, scores)}
        for alpha, scores in zip(front.alphas, front.scores, strict=True)
    ]
