"""``lorpman reproduce``: a table or figure of the paper, beside the published numbers."""

from pathlib import Path
from typing import Annotated

import typer

from lorpman.cli.options import DataDirectory, Quiet, Scale, read_seeds
from lorpman.cli.output import print_field, progress_printer
from lorpman.errors import UsageError

_Name = Annotated[str | None, typer.Argument(metavar="NAME", help="A table or figure; see --list.")]
_List = Annotated[
    bool, typer.Option("--list", help="Say what there is, what it needs, what of it is here.")
]
_Seeds = Annotated[
    str | None, typer.Option(help="Comma-separated whole numbers [default: the table's]")
]
_Out = Annotated[
    Path, typer.Option(metavar="DIR", help="Where to write NAME.md, NAME.json and NAME.png.")
]
_Runs = Annotated[
    Path, typer.Option(metavar="DIR", help="Where runs are, in a folder for each problem.")
]
_NoTraining = Annotated[
    bool, typer.Option("--no-training", help="Use the runs that are there, and no others.")
]


def reproduce(
    name: _Name = None,
    list_: _List = False,
    scale: Scale = "laptop",
    seeds: _Seeds = None,
    out: _Out = Path("runs/reproduce"),
    runs: _Runs = Path("runs/compare"),
    data: DataDirectory = None,
    no_training: _NoTraining = False,
    quiet: Quiet = False,
) -> None:
    """Make a table or figure of the paper again; train the runs that it lacks."""
    from lorpman.lab.reproduce.data_requirements import describe
    from lorpman.lab.reproduce.registry import REPRODUCTIONS, get_reproduction
    from lorpman.lab.reproduce.train_and_measure import reproduce as make
    from lorpman.lab.reproduce.train_and_measure import write
    from lorpman.lab.runs.directory import data_root

    root = data_root(data)
    if list_:
        for row in REPRODUCTIONS.values():
            typer.echo(describe(row, root))
        return
    if name is None:
        raise UsageError(f"which table or figure? known: {', '.join(REPRODUCTIONS)}")
    reproduced = make(
        get_reproduction(name),
        scale,
        runs,
        root,
        seeds=None if seeds is None else read_seeds(seeds),
        training=not no_training,
        tell=progress_printer(quiet),
    )
    paths = write(reproduced, out)
    typer.echo(paths[0].read_text())
    for kind, path in zip(("table", "numbers", "picture"), paths, strict=True):
        print_field(kind, path, 9)
