"""``lorpman problems``: what can be trained."""

import typer

from lorpman.errors import UsageError


def problems() -> None:
    """List the problems that can be trained."""
    from lorpman.lab.problems.registry import get_problem, problem_names

    names = problem_names()
    width = max(map(len, names)) + 2
    for name in names:
        try:
            summary = get_problem(name).summary
        except UsageError as error:  # a package that cannot be imported must not hide the others
            summary = str(error)
        typer.echo(f"{name:<{width}}{summary}")
