"""``lorpman new``: a problem file to start from."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from lorpman.cli.output import print_field

_File = Annotated[Path, typer.Argument(metavar="FILE", help="Such as mine.py.")]
_Kind = Annotated[Literal["tabular", "image", "text"], typer.Option(help="What the samples are.")]


def new(file: _File, kind: _Kind = "tabular") -> None:
    """Write a commented problem file, which trains as it stands, for you to change."""
    from lorpman.lab.problems.starting_file import write_starting_file

    write_starting_file(file, kind)
    print_field("file", file)
    print_field("train it", f"lorpman train {file}")
