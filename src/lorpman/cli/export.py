"""``lorpman export``: a network of a run as a file that needs no lorpman."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lorpman.cli.options import DataDirectory, ProblemOfRun, RunDirectory, read_alpha, read_problem
from lorpman.cli.output import print_field, scores_text
from lorpman.errors import UsageError

_Alpha = Annotated[
    str,
    typer.Option(
        metavar="A,B,...",
        help="One weight per task, or: any (.onnx, .pt2, one adapter per task).",
        show_default=True,
    ),
]
_To = Annotated[
    Path,
    typer.Option(metavar="FILE", help=".safetensors, .onnx, .pt2, or a folder for PEFT adapters"),
]
_Recalibrate = Annotated[
    int, typer.Option(metavar="N", help="Estimate BatchNorm anew from N training batches.")
]


def export(
    run: RunDirectory,
    to: _To,
    alpha: _Alpha = "any",
    recalibrate: _Recalibrate = 0,
    data: DataDirectory = None,
    problem: ProblemOfRun = None,
) -> None:
    """Write the network at a preference to a file, with a card, or as PEFT adapters."""
    from lorpman.lab.runs.directory import data_root, open_run
    from lorpman.lab.runs.export_adapters import export_adapters
    from lorpman.lab.runs.export_run import export_from_run

    spec, model = open_run(run, read_problem(problem))
    chosen = None if alpha == "any" else read_alpha(alpha, model.num_tasks)
    if recalibrate < 0 or (recalibrate and chosen is None):
        raise UsageError("--recalibrate expects a number of batches and one preference in --alpha")
    # A folder, which is what PEFT keeps an adapter in.
    if not to.suffix:
        for folder in export_adapters(spec, model, chosen, to):
            print_field("adapter", folder)
        return
    taken = export_from_run(spec, model, spec.load(data_root(data)), chosen, to, recalibrate)
    written = taken.file
    _print_scores(taken.card)
    if written.difference is not None:
        batches = "any batch size" if written.any_batch_size else "this batch size only"
        print_field("checked", f"differs from PyTorch by {written.difference:.1g}; {batches}")
    print_field("file", written.path)
    print_field("card", written.card)


def _print_scores(card: Mapping[str, Any]) -> None:
    """The test scores on the card, and those before its BatchNorm layers were estimated anew."""
    if "recalibrated" in card:
        before = card["recalibrated"]
        print_field("BatchNorm", f"{before['layers']} layers from {before['batches']} batches")
        print_field("before", scores_text(before["scores_before"]["test"]))
    # The card of a whole front has a list of scores instead; it is too long to print.
    if "scores" in card:
        print_field("test", scores_text(card["scores"]["test"]))
