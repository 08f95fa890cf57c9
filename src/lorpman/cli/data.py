"""``lorpman data``: the files of a problem."""

import typer

from lorpman.cli.options import DataDirectory, ProblemName


def data(problem: ProblemName, data: DataDirectory = None) -> None:
    """Fetch and check the files of PROBLEM, or say which ones to put where."""
    from lorpman.lab.datasets.sources import SOURCES, obtain
    from lorpman.lab.problems.registry import get_problem
    from lorpman.lab.runs.directory import data_root

    get_problem(problem)  # an unknown name is an error, not a problem without files
    if problem not in SOURCES:
        typer.echo(f"{problem} needs no files")
    else:
        typer.echo(obtain(problem, data_root(data)))
