"""Training several runs, one after the other or many at once."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from lorpman.lab.isolated_training import try_training
from lorpman.lab.run_board import RunBoard, WatchedRun, watching_runs
from lorpman.lab.run_progress import terminal
from lorpman.lab.runs.spec import Spec
from lorpman.lab.workers import Workers


def train_runs(
    specs: Mapping[Path, Spec],
    root: Path,
    workers: Workers,
    *,
    isolate: bool = True,
    tell: Callable[[str], None] | None = None,
    live: bool = False,
) -> dict[Path, str]:
    """Train runs, or continue them where they were interrupted. One that fails stops no other.

    Args:
        specs: What to train, by run directory.
        root: The data directory.
        workers: How many at once, and where.
        isolate: Give each run a process of its own; with several workers each has one anyway.
        tell: Told which run begins, ends or fails, and the time left; None for nobody.
        live: On a terminal, show a table that follows the runs instead.

    Returns:
        Why runs failed, by run directory.

    Raises:
        UsageError: If there is no scheduler at the address, or it has no workers.
    """
    watched = {
        run.name: WatchedRun(run, spec.method.name, spec.training.epochs)
        for run, spec in specs.items()
    }
    # Lines of epochs say nothing beside those of other runs, and would tear a table apart.
    epoch_lines = tell is not None and not workers.several and not (live and terminal())
    failures = {}
    with watching_runs(watched, workers.at_once, tell, live) as board:
        board_here = None if workers.scheduler else board
        # Whole paths: a worker may have been started in another folder.
        train = partial(
            _train_one,
            board_here,
            root.absolute(),
            # Runs in one process would share torch's generators and threads.
            isolate or workers.several,
            epoch_lines,
            workers.threads,
        )
        calls = [(run.absolute(), spec) for run, spec in specs.items()]
        for name, reason in workers.each(train, calls):
            board.ends(name, reason)
            if reason is not None:
                failures[name] = reason
    return {run: failures[run.name] for run in specs if run.name in failures}


def _train_one(
    board: RunBoard | None,
    root: Path,
    isolate: bool,
    progress: bool,
    threads: int | None,
    run: Path,
    spec: Spec,
) -> tuple[str, str | None]:
    """The name of the run, and why it failed, if it did; also called on other machines."""
    # There, nobody can be told: the board sees what appears in the run's directory.
    if board is not None:
        board.begins(run.name)
    return run.name, try_training(spec, run, root, isolate, progress, threads)
