"""The explorer from Python: in a notebook inside the page, in a script as the command does."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lorpman.errors import UsageError
from lorpman.explorer.live_model import open_model
from lorpman.explorer.opened_run import OpenedRun, open_runs
from lorpman.explorer.server import Explorer, serve_runs
from lorpman.explorer.shown_input import Show
from lorpman.lab.runs.directory import data_root
from lorpman.manifold.base import Manifold
from lorpman.task import Task

_HEIGHT = 900  # pixels of the frame in a notebook


def explore(
    *runs: Any,
    tasks: Sequence[Task] | None = None,
    data: Any = None,
    show: Show | None = None,
    port: int = 0,
    samples: int = 1000,
    wait: bool | None = None,
) -> Explorer:
    """Look at runs, or at a model that was trained in a loop of one's own, on a web page.

    In a notebook the page opens below the cell, and the notebook goes on. Elsewhere its address
    is printed, and it answers until Ctrl-C.

    Args:
        runs: Run directories (or what has one as ``path``), or one manifold.
        tasks: The tasks of the manifold; runs know theirs.
        data: For a manifold, what it is scored on: a Dataset, a DataLoader or a pair ``(x, y)``;
            for runs, the directory of their datasets.
        show: How one input of the manifold is shown; None for the usual way.
        port: The port; 0 for any free one.
        samples: On how many samples the moving point is scored at most.
        wait: Whether to answer until interrupted; None for yes, except in a notebook.

    Returns:
        The explorer; where nothing was waited for, it answers in a thread until its ``close``.

    Raises:
        UsageError: If there is nothing to look at, or it cannot be opened.
    """
    notebook = in_notebook()
    opened = _open(runs, tasks, data, show)
    explorer = serve_runs(opened, port=port, samples=samples, framed=notebook, tell=_tell)
    _tell(f"page: {explorer.url}")
    if wait if wait is not None else not notebook:
        explorer.run()
        return explorer
    explorer.start()
    if notebook:
        from IPython.display import IFrame, display

        display(IFrame(explorer.url, width="100%", height=_HEIGHT))
    return explorer


def _open(
    runs: Sequence[Any], tasks: Sequence[Task] | None, data: Any, show: Show | None
) -> list[OpenedRun]:
    if not runs:
        raise UsageError("explore needs a run, or a model with tasks= and data=")
    if not isinstance(runs[0], Manifold):
        root = data_root(None if data is None else Path(data))
        return open_runs([Path(getattr(run, "path", run)) for run in runs], root, _tell)
    if len(runs) > 1:
        raise UsageError(f"explore takes one model at a time, found {len(runs)}")
    if tasks is None or data is None:
        raise UsageError("explore(model) needs tasks=[...] and data=..., to score it on")
    _tell("scoring the model")
    return [open_model(runs[0], tasks, data, show=show)]


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
