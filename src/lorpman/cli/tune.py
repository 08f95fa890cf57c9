"""``lorpman tune``: the best settings of a problem, found on validation data."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from lorpman.cli.options import (
    DataDirectory,
    Jobs,
    MethodName,
    ProblemName,
    Quiet,
    Recipe,
    Scale,
    Scheduler,
    Seed,
    Settings,
    read_overrides,
)
from lorpman.cli.output import print_field, progress_printer
from lorpman.errors import UsageError

_Trials = Annotated[int, typer.Option(help="Finished trials that the study shall have.")]
_Study = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Kept here; several workers may share it.")
]
_Search = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=V,V,...", help="Values to try [the preset's]; repeatable."),
]
_Epochs = Annotated[int | None, typer.Option(help="[default: the preset's]")]


def tune(
    problem: ProblemName,
    method: MethodName = "lorpman",
    trials: _Trials = 20,
    study: _Study = None,
    search: _Search = None,
    epochs: _Epochs = None,
    seed: Seed = 0,
    recipe: Recipe = None,
    set_: Settings = None,
    scale: Scale = "paper",
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    data: DataDirectory = None,
    quiet: Quiet = False,
) -> None:
    """Search the paper's ranges with Optuna for the best validation hypervolume."""
    from lorpman.lab.runs.directory import data_root
    from lorpman.lab.sweep import Sweep
    from lorpman.lab.tune import tune as run_study
    from lorpman.lab.workers import Workers

    overrides, ranges = read_overrides(set_, epochs), _read_ranges(search or [])
    sweep = Sweep.make(problem, method, seed, overrides, ranges, scale, recipe)
    file = study or Path("runs") / f"{sweep.problem.name}-{method}.study"
    finished = run_study(
        sweep,
        trials,
        file,
        data_root(data),
        # To what is standard output then: above a table, while there is one.
        lambda line: typer.echo(line, file=sys.stdout),
        Workers(jobs, scheduler),
        tell=progress_printer(quiet),
        live=not quiet,
    )
    best = finished.best_trial
    volume = f"{best.value:.4g}  (trial {best.number})"
    print_field("best validation hypervolume", volume, 29)
    typer.echo(f"train it with: {sweep.command(best.params)}")
    print_field("study file", file, 29)


def _read_ranges(given: Sequence[str]) -> dict[str, Any]:
    """Read ``rank=4,8`` texts as a mapping from settings to the values to try.

    >>> _read_ranges(["rank=4,8"])
    {'rank': [4, 8]}
    """
    from lorpman.lab.settings import parse_assignments

    ranges: dict[str, Any] = {}
    for text in given:
        key, _, values = text.partition("=")
        # As a list of YAML, so that values are read as those of --set.
        ranges |= parse_assignments([f"{key}=[{values}]"]) if values else {key: []}
        if not ranges[key.strip()]:
            raise UsageError(f"--search expects key=value,value, found '{text}'")
    return ranges
