"""``lorpman explore``: runs on a local web page."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from lorpman.cli.options import DataDirectory

_Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories made by train.")]


def explore(
    runs: _Runs,
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on. Any other than this machine's own needs the token "
            "that is printed."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8050,
    samples: Annotated[
        int, typer.Option(min=1, help="Test samples that the moving point is scored on.")
    ] = 1000,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    data: DataDirectory = None,
) -> None:
    """Look at runs in a browser: move along the front, ask for scores, take a network away."""
    from lorpman.errors import need
    from lorpman.lab.runs.directory import data_root

    need("dash", extra="explore")
    from lorpman.explorer.server import make_explorer

    explorer = make_explorer(runs, data_root(data), host=host, port=port, samples=samples)
    typer.echo(f"page        {explorer.url}")
    typer.echo("stop        Ctrl+C")
    sys.stdout.flush()
    if browser and _has_screen():
        webbrowser.open(explorer.url)
    try:
        explorer.run()
    except KeyboardInterrupt:
        typer.echo("stopped")


def _has_screen() -> bool:
    """Whether a browser would open in a window; in a terminal it would take the terminal over."""
    windows = sys.platform in ("darwin", "win32")
    return sys.stdout.isatty() and (
        windows or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    )
