"""``lorpman compare``: several methods on one problem, in one table."""

from pathlib import Path
from typing import Annotated

import typer

from lorpman.cli.options import (
    DataDirectory,
    Jobs,
    ProblemName,
    Quiet,
    Recipe,
    Scale,
    Scheduler,
    Settings,
    read_names,
    read_overrides,
    read_seeds,
)
from lorpman.cli.output import print_field, progress_printer

_Methods = Annotated[str, typer.Option(help="Comma-separated; see: lorpman methods")]
_Seeds = Annotated[str, typer.Option(help="Comma-separated whole numbers.")]
_Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Where runs are [runs/compare/PROBLEM]")
]


def compare(
    problem: ProblemName,
    methods: _Methods = "lorpman",
    seeds: _Seeds = "0,1,2",
    out: _Out = None,
    data: DataDirectory = None,
    scale: Scale = "paper",
    recipe: Recipe = None,
    set_: Settings = None,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Train PROBLEM with several methods, unless that is done, and write one table."""
    from lorpman.lab.compare import compare as compare_runs
    from lorpman.lab.problems.own_problem import find_problem
    from lorpman.lab.runs.directory import data_root
    from lorpman.lab.workers import Workers

    found = find_problem(problem)
    folder = out or Path("runs") / "compare" / found.name
    table = compare_runs(
        found,
        read_names(methods, "--methods"),
        read_seeds(seeds),
        folder,
        data_root(data),
        scale=scale,
        recipe=recipe,
        overrides=read_overrides(set_),
        workers=Workers(jobs, scheduler),
        tell=progress_printer(quiet),
        live=not quiet,
    )
    typer.echo(table.markdown())
    print_field("table", folder / "comparison.md", 9)
    print_field("picture", folder / "comparison.png", 9)
