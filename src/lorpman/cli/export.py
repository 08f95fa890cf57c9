"""``lorpman export``: a network of a run as a file that needs no lorpman."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lorpman.cli.options import DataDirectory, RunDirectory, read_alpha
from lorpman.errors import UsageError


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
    from lorpman.lab.runs.directory import data_root, open_run
    from lorpman.lab.runs.export_run import export_from_run

    spec, model = open_run(run)
    chosen = None if alpha == "any" else read_alpha(alpha, model.num_tasks)
    if recalibrate < 0 or (recalibrate and chosen is None):
        raise UsageError("--recalibrate expects a number of batches and one preference in --alpha")
    taken = export_from_run(spec, model, spec.load(data_root(data)), chosen, to, recalibrate)
    written = taken.file
    _report(taken.card)
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
