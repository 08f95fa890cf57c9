"""``lorpman report``: a run as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from lorpman.cli.options import DataDirectory, ProblemOfRun, RunDirectory, read_problem
from lorpman.cli.output import print_field

_To = Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write [RUN/report.html]")]


def report(
    run: RunDirectory, to: _To = None, data: DataDirectory = None, problem: ProblemOfRun = None
) -> None:
    """Write one HTML file with a run's front, inputs, table, curves and settings."""
    from lorpman.errors import need
    from lorpman.lab.runs.directory import data_root

    # Before the import below, so that a missing extra is named instead of a module.
    need("plotly", extra="explore")
    need("dash", extra="explore")
    from lorpman.explorer.report import write_report

    to = to or run / "report.html"
    write_report(run, to, read_problem(problem), data_root(data))
    print_field("report", to)
