"""The page and the report from Python: ``lp.explore`` and ``lp.report``."""

import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lorpman._files import as_path, write_bytes
from lorpman.errors import UsageError, need
from lorpman.explorer.live_model import open_model
from lorpman.explorer.opened_run import OpenedRun, open_runs
from lorpman.explorer.shown_input import Show
from lorpman.lab.from_python import Run
from lorpman.lab.problems.own_problem import find_problem
from lorpman.lab.problems.problem import Problem
from lorpman.lab.runs.directory import data_root
from lorpman.manifold.base import Manifold
from lorpman.task import Task
from lorpman.training.progress import in_notebook, progress_stream


def report(
    run: Run | str | Path, to: str | Path | None = None, problem: Problem | str | None = None
) -> Path:
    """Describe a run in one HTML file, as ``lorpman report`` does.

    Args:
        run: What ``lp.train`` or ``lp.open_run`` gave, or a run directory.
        to: The file; default: ``report.html`` in the run directory.
        problem: For a directory whose problem is not built in: the problem, or where it is.

    Returns:
        The file.

    Raises:
        UsageError: If there is no run with a front, or the file cannot be written.
    """
    need("plotly", extra="explore")
    from lorpman.explorer.report import REPORT, report_html

    (opened,) = _opened([run], problem, data_root(None))
    assert opened.path is not None  # a run has a directory
    file = opened.path / "report.html" if to is None else as_path("to", to)
    write_bytes(file, report_html(opened).encode(), REPORT)
    return file


def explore(
    *shown: Run | Manifold | str | Path,
    tasks: Sequence[Task] | None = None,
    data: Any = None,
    problem: Problem | str | None = None,
    show: Show | None = None,
    port: int = 0,
    samples: int = 1000,
    block: bool | None = None,
) -> Any:
    """Open the page about runs, or about a model that was trained in a loop of one's own.

    In a notebook the page stands below the cell. In a script it opens in a browser, and the call
    ends with Ctrl+C.

    Args:
        *shown: Runs, run directories, or one manifold.
        tasks: Of a manifold.
        data: Of a manifold: held-out samples, as a split of :class:`lp.Splits` may be, or
            ``lp.Splits`` themselves. For run directories: where datasets are.
        problem: For directories whose problem is not built in: the problem, or where it is.
        show: How one input of a manifold looks: a function of it that gives an image
            ``[1 or 3, h, w]``, a dict (a row of a table) or a text; default: by its shape.
        port: 0 for any free one.
        samples: On how many test samples the moving point is scored at most.
        block: Whether to wait until interrupted; default: outside a notebook.

    Returns:
        What serves the page, with ``url`` and ``close()``.

    Raises:
        UsageError: If a run cannot be opened, or the address cannot be listened on.
    """
    need("dash", extra="explore")
    from lorpman.explorer.server import serve_runs

    if shown and isinstance(shown[0], Manifold):
        if tasks is None or data is None:
            raise UsageError("explore(model) needs tasks=[...] and data=held-out samples")
        if len(shown) > 1:
            raise UsageError(f"explore takes one model at a time, found {len(shown)}")
        _tell("scoring the model")
        runs = [open_model(shown[0], tasks, data, show=show)]
    else:
        runs = _opened(shown, problem, data_root(None if data is None else as_path("data", data)))
    notebook = in_notebook()
    explorer = serve_runs(runs, port=port, samples=samples, framed=notebook, tell=_tell)
    if not (block if block is not None else not notebook):
        explorer.start()
        if notebook:
            _show_below_cell(explorer.url)
        return explorer
    sys.stdout.write(f"page {explorer.url}  (stop: Ctrl+C)\n")
    sys.stdout.flush()
    webbrowser.open(explorer.url)
    with suppress(KeyboardInterrupt):
        explorer.run()
    return explorer


def _opened(
    shown: Sequence[Any], problem: Problem | str | None, root: Path | None
) -> list[OpenedRun]:
    """Runs as the page has them."""
    if not shown:
        raise UsageError("explore needs a run, a run directory or a manifold")
    found = None if problem is None else find_problem(problem)
    if isinstance(shown[0], Run):
        found, root = shown[0].problem, root and shown[0].root
    paths = [one.path if isinstance(one, Run) else as_path("a run", one) for one in shown]
    return open_runs(paths, root, found, _tell)


def _tell(line: str) -> None:
    """Say at once what is being done: reading data can take a minute."""
    stream = progress_stream()
    stream.write(f"{line}\n")
    stream.flush()


def _show_below_cell(url: str) -> None:
    from IPython.display import HTML, IFrame, display

    display(HTML(f'<a href="{url}" target="_blank">{url}</a>'))
    display(IFrame(url, width="100%", height=800))
