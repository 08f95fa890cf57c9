"""``lorpman methods``: with what a problem can be trained."""

import typer

from lorpman.errors import UsageError


def methods() -> None:
    """List the methods that a problem can be trained with."""
    from lorpman.lab.methods.registry import get_method, method_names

    for name in method_names():
        try:
            method = get_method(name)
            typer.echo(f"{name:<14}{method.kind:<12}{method.summary}")
        except UsageError as error:  # a package that cannot be imported must not hide the others
            typer.echo(f"{name:<14}{'-':<12}{error}")
