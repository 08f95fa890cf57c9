"""The page and the report from Python: ``lp.explore`` and ``lp.report``."""

import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lorpman._files import write_bytes
from lorpman.errors import UsageError, need
from lorpman.explorer.opened_run import OpenedRun, open_runs
from lorpman.front.evaluate import evaluate
from lorpman.front.select import is_finite
from lorpman.lab.datasets.splits import Splits, batches
from lorpman.lab.from_python import Run
from lorpman.lab.methods.method import Method
from lorpman.lab.problems.own_problem import find_problem
from lorpman.lab.problems.problem import Problem
from lorpman.lab.runs.directory import data_root
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.lab.runs.spec import Spec
from lorpman.lab.settings import NoSettings, TrainingSettings
from lorpman.manifold.base import Manifold
from lorpman.rules.objective import Linear
from lorpman.task import Task, check_tasks


def report(
    run: Run | str | Path, to: str | Path | None = None, problem: Problem | str | None = None
) -> Path:
    """Describe a run in one HTML file, as ``lorpman report`` does.

    Args:
        run: what ``lp.train`` or ``lp.open_run`` gave, or a run directory.
        to: the file; default: ``report.html`` in the run directory.
        problem: for a directory whose problem is not built in: the problem, or where it is.

    Returns:
        The file.

    Raises:
        UsageError: if there is no run with a front, or the file cannot be written.
    """
    need("plotly", extra="explore")
    from lorpman.explorer.report import REPORT, report_html

    (opened,) = _opened([run], problem, None)
    file = opened.path / "report.html" if to is None else Path(to)
    write_bytes(file, report_html(opened).encode(), REPORT)
    return file


def explore(
    *shown: Run | Manifold | str | Path,
    tasks: Sequence[Task] | None = None,
    data: Any = None,
    problem: Problem | str | None = None,
    port: int = 0,
    samples: int = 1000,
    block: bool | None = None,
) -> Any:
    """Open the page about runs, or about a model that was trained in a loop of one's own.

    In a notebook the page stands below the cell. In a script it opens in a browser, and the call
    ends with Ctrl+C.

    Args:
        *shown: runs, run directories, or one manifold.
        tasks: of a manifold.
        data: of a manifold: held-out samples, as a split of :class:`lp.Splits` may be, or
            ``lp.Splits`` themselves. For run directories: where datasets are.
        problem: for directories whose problem is not built in: the problem, or where it is.
        port: 0 for any free one.
        samples: on how many test samples the moving point is scored at most.
        block: whether to wait until interrupted; default: outside a notebook.

    Returns:
        What serves the page, with ``url`` and ``close()``.

    Raises:
        UsageError: if a run cannot be opened, or the address cannot be listened on.
    """
    need("dash", extra="explore")
    from lorpman.explorer.server import serve_runs

    if shown and isinstance(shown[0], Manifold):
        runs = [_open_model(shown[0], tasks, data)]
    else:
        runs = _opened(shown, problem, data_root(None if data is None else Path(data)))
    notebook = _in_notebook()
    explorer = serve_runs(runs, port=port, samples=samples, framed=notebook)
    if not (block if block is not None else not notebook):
        threading.Thread(target=explorer.run, daemon=True).start()
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
    paths = [one.path if isinstance(one, Run) else Path(one) for one in shown]
    return open_runs(paths, root, found)


def _open_model(model: Manifold, tasks: Sequence[Task] | None, data: Any) -> OpenedRun:
    """A manifold that was trained elsewhere, as if it were a run."""
    if tasks is None or data is None:
        raise UsageError("explore(model) needs tasks=[...] and data=held-out samples")
    check_tasks(tasks, model.num_tasks)
    splits = data if isinstance(data, Splits) else Splits(train=data, validation=data, test=data)
    name = type(model).__name__.lower()
    problem = Problem(
        "model",
        list(tasks),
        lambda: model.solution(model.preferences()[0]),
        lambda: splits,
        summary="a model that was trained in a loop of its own",
        source="",
    )
    kind = "discrete" if is_finite(model) else "continuous"
    method = Method(
        name,
        f"lp.{type(model).__name__}",
        kind,  # type: ignore[arg-type]
        NoSettings,
        lambda *parts: model,
        lambda settings: Linear(),
    )
    spec = Spec(problem, method, 0, TrainingSettings(), NoSettings(), NoSettings())  # type: ignore[call-arg]
    front = evaluate(model, tasks, batches(splits.test, EVALUATION_BATCH), label=name)
    described = {**spec.described(), "parameters": model.num_parameters()}
    return OpenedRun("model", Path("model"), spec, front, [], described, model.eval(), splits, "")


def _in_notebook() -> bool:
    """Whether a cell of a notebook is being run; never true before IPython was imported."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _show_below_cell(url: str) -> None:
    from IPython.display import HTML, IFrame, display

    display(HTML(f'<a href="{url}" target="_blank">{url}</a>'))
    display(IFrame(url, width="100%", height=800))
