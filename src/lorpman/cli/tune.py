"""``lorpman tune``: the best settings of a problem, found on validation data."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lorpman.cli.options import DataDirectory, ProblemName, Recipe, Scale, Settings
from lorpman.errors import UsageError


def tune(
    problem: ProblemName,
    method: Annotated[str, typer.Option(help="See: lorpman methods")] = "lorpman",
    trials: Annotated[int, typer.Option(help="Finished trials that the study shall have.")] = 20,
    study: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Kept here; several workers may share it."),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=V,V,...", help="Values to try [the preset's]; repeatable."),
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="[default: the preset's]")] = None,
    seed: Annotated[int, typer.Option(help="Of every trial.")] = 0,
    recipe: Recipe = None,
    set_: Settings = None,
    scale: Scale = "paper",
    data: DataDirectory = None,
) -> None:
    """Search the paper's ranges with Optuna for the best validation hypervolume."""
    from lorpman.lab.runs.directory import data_root
    from lorpman.lab.settings import parse_assignments
    from lorpman.lab.tune import Sweep
    from lorpman.lab.tune import tune as run_study

    overrides: dict[str, Any] = parse_assignments(set_ or [])
    if epochs is not None:
        overrides["epochs"] = epochs
    ranges: dict[str, Any] = {}
    for text in search or []:
        key, _, values = text.partition("=")
        ranges |= parse_assignments([f"{key}=[{values}]"]) if values else {key: []}
        if not ranges[key.strip()]:
            raise UsageError(f"--search expects key=value,value, found '{text}'")
    sweep = Sweep.make(problem, method, seed, overrides, ranges, scale, recipe)
    file = study or Path("runs") / f"{problem}-{method}.study"
    done = run_study(sweep, trials, file, data_root(data), typer.echo)
    best = done.best_trial
    typer.echo(f"best validation hypervolume  {best.value:.4g}  (trial {best.number})")
    typer.echo(f"train it with: {sweep.command(best.params)}")
    typer.echo(f"study file                   {file}")
