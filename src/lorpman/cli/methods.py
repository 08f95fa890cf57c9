"""``lorpman methods``: with what a problem can be trained."""

import typer


def methods() -> None:
    """List the methods that a problem can be trained with."""
    from lorpman.lab.methods.registry import METHODS

    for name, method in METHODS.items():
        typer.echo(f"{name:<14}{method.kind:<12}{method.summary}")
