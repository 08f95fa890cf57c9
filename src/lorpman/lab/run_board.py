"""What a person sees while several runs train: which are done, which run, and the time left."""

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lorpman.errors import UsageError
from lorpman.lab.runs.epoch_log import read_epoch_log

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

State = Literal["waits", "runs", "done", "failed"]
_STATES: tuple[State, ...] = ("waits", "runs", "done", "failed")
_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass
class WatchedRun:
    """One run of a comparison, as its directory tells.

    Args:
        path: The run directory.
        method: Runs of one method take about the same time per epoch.
        epochs: Of the whole training.
    """

    path: Path
    method: str
    epochs: int
    state: State = "waits"
    """Whether it waits, runs, is done or has failed."""
    epochs_done: int = 0
    """As its log tells."""
    seconds: list[float] = field(default_factory=list)
    """What each epoch took."""

    def __post_init__(self) -> None:
        # What the directory holds now may be of an interrupted run, which waits to be continued.
        self._before = _changed_at(self.path)

    def look(self) -> None:
        """Read how far the run is; once its directory changes, it runs."""
        if self.state == "waits" and _changed_at(self.path) != self._before:
            self.state = "runs"
        # No notes yet, or half a line of them.
        with suppress(UsageError):
            lines = read_epoch_log(self.path)
            self.seconds = [line["seconds"] for line in lines if "seconds" in line]
            self.epochs_done = min(self.epochs, len(self.seconds))


def _changed_at(folder: Path) -> int | None:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None


def time_left(runs: Sequence[WatchedRun], at_once: int | None) -> float | None:
    """An estimate of the seconds until all runs are done.

    Every epoch left takes as long as those of its method did, or as those of all methods.

    Args:
        runs: All runs of the comparison.
        at_once: How many can run at a time; None for as many as do now.

    Returns:
        None while no epoch is done.

    >>> done = WatchedRun(Path("a"), "pamal", 2, "done", 2, [3.0, 3.0])
    >>> time_left([done, WatchedRun(Path("b"), "pamal", 2)], at_once=1)
    6.0
    """
    every = [seconds for run in runs for seconds in run.seconds]
    if not every:
        return None
    left = 0.0
    for run in runs:
        if run.state in ("waits", "runs"):
            alike = [s for other in runs if other.method == run.method for s in other.seconds]
            known = alike or every
            left += (run.epochs - run.epochs_done) * sum(known) / len(known)
    running = sum(run.state == "runs" for run in runs)
    unfinished = running + sum(run.state == "waits" for run in runs)
    return left / max(1, min(at_once or running, unfinished))


def duration(seconds: float) -> str:
    """A time as people say it.

    Args:
        seconds: The time.

    >>> duration(42.4), duration(200), duration(8000)
    ('42 s', '3 min 20 s', '2 h 13 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class RunBoard:
    """Follows runs by their directories, wherever they are trained.

    Args:
        runs: By the names of their directories.
        at_once: How many can run at a time; None for as many as do now.
        tell: Told a line when a run begins or ends; None for nobody.
    """

    def __init__(
        self,
        runs: Mapping[str, WatchedRun],
        at_once: int | None,
        tell: Callable[[str], None] | None,
    ) -> None:
        self.runs = dict(runs)
        self._at_once = at_once
        self._tell = tell or (lambda line: None)
        # Runs begin in threads of their own.
        # Reentrant, since a line is told, with its summary, while the lock is held.
        self._lock = threading.RLock()

    def begins(self, name: str) -> None:
        """A run is being trained from now on.

        Args:
            name: Which run.
        """
        with self._lock:
            run = self.runs[name]
            if run.state == "waits":
                run.state = "runs"
                self._say(f"{run.path} begins")

    def ends(self, name: str, failure: str | None) -> None:
        """A run is done, or has failed.

        Args:
            name: Which run.
            failure: What went wrong, on one line; None if nothing did.
        """
        with self._lock:
            run = self.runs[name]
            run.look()
            run.state = "done" if failure is None else "failed"
            self._say(f"{run.path} " + ("done" if failure is None else f"failed: {failure}"))

    def look(self) -> None:
        """Read the directories of the runs that are not done."""
        with self._lock:
            for run in self.runs.values():
                if run.state in ("waits", "runs"):
                    before = run.state
                    run.look()
                    if run.state != before:
                        self._say(f"{run.path} begins")

    def summary(self) -> str:
        """How many runs are done, which run, and the time left, on one line."""
        with self._lock:
            of = {s: [n for n, run in self.runs.items() if run.state == s] for s in _STATES}
            left = time_left(list(self.runs.values()), self._at_once)
        parts = [f"{len(of['done'])} of {len(self.runs)} done"]
        parts += [f"{len(of['failed'])} failed"] if of["failed"] else []
        parts += [f"running: {', '.join(of['runs'])}"] if of["runs"] else []
        parts += [f"about {duration(left)} left"] if left else []
        return "; ".join(parts)

    def _say(self, line: str) -> None:
        self._tell(f"{line} ({self.summary()})")

    def table(self) -> "Table":
        """All runs, for a terminal; waiting ones are counted, not listed."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        self.look()
        with self._lock:
            # The last ones that ended, and all that run: a hundred runs fit no screen.
            ended = [(n, r) for n, r in self.runs.items() if r.state in ("done", "failed")][-8:]
            running = [(n, r) for n, r in self.runs.items() if r.state == "runs"]
            table = Table.grid(padding=(0, 2))
            for name, run in [*ended, *running]:
                bar = ProgressBar(total=run.epochs, completed=run.epochs_done, width=24)
                epochs = f"epoch {run.epochs_done}/{run.epochs}"
                table.add_row(name, bar, epochs, {"runs": "running"}.get(run.state, run.state))
            waiting = sum(run.state == "waits" for run in self.runs.values())
            summary = self.summary() + (f"; {waiting} waiting" if waiting else "")
        outer = Table.grid()
        outer.add_row(table)
        outer.add_row(summary)
        return outer


@contextmanager
def watching(
    runs: Mapping[str, WatchedRun],
    at_once: int | None,
    tell: Callable[[str], None] | None,
    live: bool,
) -> Iterator[RunBoard]:
    """A board that follows runs inside this context.

    Args:
        runs: By the names of their directories.
        at_once: How many can run at a time; None for as many as do now.
        tell: Told a line when a run begins or ends, where no table is shown.
        live: Show a table, if standard error is a terminal.

    Yields:
        The board, to be told which runs begin and end.
    """
    console = terminal() if live else None
    board = RunBoard(runs, at_once, None if console is not None else tell)
    if not runs or (console is None and tell is None):
        yield board
    elif console is not None:
        from rich.live import Live

        with Live(get_renderable=board.table, console=console, refresh_per_second=1):
            yield board
    else:
        stop = threading.Event()
        looker = threading.Thread(target=_keep_looking, args=(board, stop), daemon=True)
        looker.start()
        try:
            yield board
        finally:
            stop.set()
            looker.join()


def _keep_looking(board: RunBoard, stop: threading.Event) -> None:
    """Notice runs that begin elsewhere, until told to stop."""
    while not stop.wait(_SECONDS_BETWEEN_LOOKS):
        board.look()


def terminal() -> "Console | None":
    """Standard error as rich sees it, if it is a terminal."""
    # rich draws a random number when it is imported; looking on must not change a run.
    drawn = random.getstate()
    from rich.console import Console

    random.setstate(drawn)
    console = Console(stderr=True)
    return console if console.is_terminal else None
