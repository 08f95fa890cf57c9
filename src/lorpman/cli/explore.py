"""``lorpman explore``: runs on a local web page."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from lorpman.cli.options import DataDirectory, ProblemOfRun, read_problem
from lorpman.cli.output import print_field

_Runs = Annotated[list[Path], typer.Argument(metavar="RUN...", help="Directories made by train.")]
_Host = Annotated[
    str,
    typer.Option(
        help="The address to listen on. Any other than this machine's own needs the token "
        "that is printed."
    ),
]
_Port = Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")]
_Samples = Annotated[
    int, typer.Option(min=1, help="Test samples that the moving point is scored on.")
]
_Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
]


def explore(
    runs: _Runs,
    host: _Host = "127.0.0.1",
    port: _Port = 8050,
    samples: _Samples = 1000,
    browser: _Browser = True,
    data: DataDirectory = None,
    problem: ProblemOfRun = None,
) -> None:
    """Look at runs in a browser: move along the front, ask for scores, take a network away."""
    # At once: what is imported and read next can take a minute.
    _tell(f"opening {len(runs)} run{'s' if len(runs) > 1 else ''}")
    from lorpman.errors import need
    from lorpman.lab.runs.directory import data_root

    # Before the import below, so that a missing extra is named instead of a module.
    need("dash", extra="explore")
    from lorpman.explorer.server import make_explorer

    root, found = data_root(data), read_problem(problem)
    explorer = make_explorer(runs, root, found, host=host, port=port, samples=samples, tell=_tell)
    print_field("page", explorer.url)
    print_field("stop", "Ctrl+C")
    # Now, also into a pipe: whoever reads it waits for the address.
    sys.stdout.flush()
    if browser and _has_screen():
        webbrowser.open(explorer.url)
    try:
        explorer.run()
    except KeyboardInterrupt:
        typer.echo("stopped")


def _tell(line: str) -> None:
    """Say on standard error what is being done."""
    typer.echo(line, err=True)


def _has_screen() -> bool:
    """Whether a browser would open in a window; in a terminal it would take the terminal over."""
    windows = sys.platform in ("darwin", "win32")
    return sys.stdout.isatty() and (
        windows or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    )
