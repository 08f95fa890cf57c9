"""Which runs of a comparison are done, which run, and the time left, as their directories tell."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from lorpman.errors import UsageError
from lorpman.lab.run_progress import (
    Progress,
    progress_table,
    summary,
    teller,
    terminal,
    watching,
)
from lorpman.lab.runs.epoch_log import read_epoch_log

if TYPE_CHECKING:
    from rich.table import Table


class WatchedRun:
    """One run of a comparison.

    Args:
        path: The run directory.
        method: Runs of one method take about the same time per epoch.
        epochs: Of the whole training.
    """

    def __init__(self, path: Path, method: str, epochs: int) -> None:
        self.path = path
        self.progress = Progress(method, epochs)
        # What the directory holds now may be of an interrupted run, which waits to be continued.
        self._before = _changed_at(path)

    def look(self) -> None:
        """Read how far the run is; once its directory changes, it runs."""
        progress = self.progress
        if progress.state == "waits" and _changed_at(self.path) != self._before:
            progress.state = "runs"
        # No notes yet, or half a line of them.
        with suppress(UsageError):
            lines = read_epoch_log(self.path)
            progress.seconds = [line["seconds"] for line in lines if "seconds" in line]
            progress.epochs_done = min(progress.epochs, len(progress.seconds))


def _changed_at(folder: Path) -> int | None:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None


class RunBoard:
    """Follows runs by their directories, wherever they are trained.

    Args:
        runs: By the names of their directories.
        at_once: How many can run at a time; None for as many as do now.
        tell: Told a line when a run begins or ends.
    """

    def __init__(
        self,
        runs: Mapping[str, WatchedRun],
        at_once: int | None,
        tell: Callable[[str], None],
    ) -> None:
        self._runs = dict(runs)
        self._at_once = at_once
        self._tell = tell
        # Runs begin in threads of their own.
        # Reentrant, since a line is told, with its summary, while the lock is held.
        self._lock = threading.RLock()

    def begins(self, name: str) -> None:
        """A run is being trained from now on.

        Args:
            name: Which run.
        """
        with self._lock:
            run = self._runs[name]
            if run.progress.state == "waits":
                run.progress.state = "runs"
                self._say(f"{run.path} begins")

    def ends(self, name: str, failure: str | None) -> None:
        """A run is done, or has failed.

        Args:
            name: Which run.
            failure: What went wrong, on one line; None if nothing did.
        """
        with self._lock:
            run = self._runs[name]
            run.look()
            run.progress.state = "done" if failure is None else "failed"
            self._say(f"{run.path} " + ("done" if failure is None else f"failed: {failure}"))

    def look(self) -> None:
        """Read the directories of the runs that are not done."""
        with self._lock:
            for run in self._runs.values():
                before = run.progress.state
                if before in ("waits", "runs"):
                    run.look()
                    if run.progress.state != before:
                        self._say(f"{run.path} begins")

    def table(self) -> "Table":
        """All runs, for a terminal."""
        self.look()
        with self._lock:
            return progress_table(self._progress(), self._at_once)

    def _progress(self) -> dict[str, Progress]:
        return {name: run.progress for name, run in self._runs.items()}

    def _say(self, line: str) -> None:
        self._tell(f"{line} ({summary(self._progress(), self._at_once)})")


@contextmanager
def watching_runs(
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
    live = live and bool(runs) and terminal() is not None
    board = RunBoard(runs, at_once, teller(tell, live))
    with watching(board, tell is not None, live):
        yield board
