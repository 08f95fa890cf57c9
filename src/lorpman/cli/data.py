"""``lorpman data``: the files of a problem."""

import typer

from lorpman.cli.options import DataDirectory, ProblemName


def data(problem: ProblemName, data: DataDirectory = None) -> None:
    """Fetch and check the files of PROBLEM, or say which ones to put where."""
    from lorpman.lab.datasets.sources import SOURCES, obtain
    from lorpman.lab.problems.own_problem import find_problem
    from lorpman.lab.runs.directory import data_root

    name = find_problem(problem).name  # an unknown one is an error, not one without files
    if name not in SOURCES:
        typer.echo(f"{name} needs no files")
    else:
        typer.echo(obtain(name, data_root(data)))
