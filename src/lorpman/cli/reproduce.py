"""``lorpman reproduce``: a table or figure of the paper, beside the published numbers."""

from pathlib import Path
from typing import Annotated

import typer

from lorpman.cli.options import DataDirectory, Quiet, Scale, read_seeds
from lorpman.errors import UsageError


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A table or figure; see --list.")
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Say what there is, what it needs, what of it is here.")
    ] = False,
    scale: Scale = "laptop",
    seeds: Annotated[
        str | None, typer.Option(help="Comma-separated whole numbers [default: the table's]")
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where to write NAME.md, NAME.json and NAME.png.")
    ] = Path("runs/reproduce"),
    runs: Annotated[
        Path, typer.Option(metavar="DIR", help="Where runs are, in a folder for each problem.")
    ] = Path("runs/compare"),
    data: DataDirectory = None,
    no_training: Annotated[
        bool, typer.Option("--no-training", help="Use the runs that are there, and no others.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Make a table or figure of the paper again; train the runs that it lacks."""
    from lorpman.lab.reproduce.make import reproduce as make
    from lorpman.lab.reproduce.make import write
    from lorpman.lab.reproduce.registry import REPRODUCTIONS, get_reproduction
    from lorpman.lab.reproduce.requirements import describe
    from lorpman.lab.runs.directory import data_root

    root = data_root(data)
    if list_:
        for row in REPRODUCTIONS.values():
            typer.echo(describe(row, root))
        return
    if name is None:
        raise UsageError(f"which table or figure? known: {', '.join(REPRODUCTIONS)}")
    found = make(
        get_reproduction(name),
        scale,
        runs,
        root,
        seeds=None if seeds is None else read_seeds(seeds),
        training=not no_training,
        tell=None if quiet else lambda line: typer.echo(line, err=True),
    )
    paths = write(found, out)
    typer.echo(paths[0].read_text())
    for what, path in zip(("table", "numbers", "picture"), paths, strict=True):
        typer.echo(f"{what:<9}{path}")
