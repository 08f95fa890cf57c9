"""``lorpman problems``: what can be trained."""

import typer


def problems() -> None:
    """List the problems that can be trained."""
    from lorpman.lab.problems.registry import PROBLEMS, get_problem

    for name in PROBLEMS:
        typer.echo(f"{name:<14}{get_problem(name).summary}")
