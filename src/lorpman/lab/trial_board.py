"""Which trials of a search are done, which run, and the time left, as its study tells."""

import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lorpman.lab.run_progress import (
    Progress,
    State,
    progress_table,
    summary,
    teller,
    terminal,
    watching,
)
from lorpman.lab.settings import format_assignments
from lorpman.lab.sweep import Sweep

if TYPE_CHECKING:
    from rich.table import Table

# A trial that was pruned, or diverged, is an answer too.
_STATES: dict[str, State] = {"RUNNING": "runs", "COMPLETE": "done", "PRUNED": "done"}


class TrialBoard:
    """Follows the trials of a study, wherever they are tried.

    Args:
        study: Optuna's.
        sweep: What is searched.
        trials: How many it shall have, if there are so many combinations.
        at_once: How many can run at a time; None for as many as do now.
        tell: Told a line when a trial begins.
    """

    def __init__(
        self,
        study: Any,
        sweep: Sweep,
        trials: int,
        at_once: int | None,
        tell: Callable[[str], None],
    ) -> None:
        self._study = study
        self._total = min(trials, sweep.combinations())
        self._epochs = sweep.spec({}).training.epochs
        self._searched = set(sweep.ranges)
        self._at_once = at_once
        self._tell = tell
        # They may be of a process that was killed, and never end.
        self._from_before = {t.number for t in self._trials() if t.state.name == "RUNNING"}
        self._noticed: set[str] = set()
        self._lock = threading.Lock()

    def look(self) -> None:
        """Read the study, and tell which trials have begun."""
        with self._lock:
            progress = self._progress()
            running = {name for name, one in progress.items() if one.state == "runs"}
            for name in sorted(running - self._noticed):
                self._tell(f"{name} begins ({summary(progress, self._at_once)})")
            self._noticed |= running

    def table(self) -> "Table":
        """All trials, for a terminal."""
        return progress_table(self._progress(), self._at_once)

    def _trials(self) -> list[Any]:
        trials: list[Any] = self._study.get_trials(deepcopy=False)
        return trials

    def _progress(self) -> dict[str, Progress]:
        """Of the trials that have begun, and of those that are still to come."""
        begun = {
            f"trial {t.number} ({' '.join(format_assignments(t.params))})": _read(t, self._epochs)
            for t in self._trials()
            # One that is still to be told its settings has not begun.
            if t.state.name in _STATES and set(t.params) == self._searched
            if t.state.name != "RUNNING" or t.number not in self._from_before
        }
        # Those that are pruned end early, and of those to come as many will.
        lengths = [one.epochs_done for one in begun.values() if one.state == "done"]
        usual = round(statistics.fmean(lengths)) if lengths else self._epochs
        waiting = range(len(begun), self._total)
        return {**begun, **{f"trial {n}": Progress("", usual) for n in waiting}}


def _read(trial: Any, epochs: int) -> Progress:
    """How far a trial is; an epoch is done once the trial was scored at its end."""
    epochs = trial.params.get("epochs", epochs)
    done = max(trial.intermediate_values, default=0)
    if trial.state.name == "COMPLETE":
        done = epochs
    # Optuna's times are local ones, without a zone.
    end = trial.datetime_complete or datetime.now()
    seconds = (end - trial.datetime_start).total_seconds()
    return Progress("", epochs, _STATES[trial.state.name], done, [seconds / max(1, done)] * done)


@contextmanager
def watching_trials(
    study: Any,
    sweep: Sweep,
    trials: int,
    at_once: int | None,
    tell: Callable[[str], None] | None,
    live: bool,
) -> Iterator[None]:
    """Follow the trials of a study inside this context.

    Args:
        study: Optuna's.
        sweep: What is searched.
        trials: How many it shall have, if there are so many combinations.
        at_once: How many can run at a time; None for as many as do now.
        tell: Told a line when a trial begins, where no table is shown.
        live: Show a table, if standard error is a terminal.
    """
    live = live and terminal() is not None
    board = TrialBoard(study, sweep, trials, at_once, teller(tell, live))
    with watching(board, tell is not None, live):
        yield
