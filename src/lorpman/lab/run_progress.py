"""How far several trainings are, as a person sees it: what is done, what runs, the time left."""

import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

State = Literal["waits", "runs", "done", "failed"]
_STATES: tuple[State, ...] = ("waits", "runs", "done", "failed")
_SECONDS_BETWEEN_LOOKS = 1.0
_ENDED_SHOWN = 8


@dataclass
class Progress:
    """How far one training is.

    Args:
        kind: Those of one kind take about the same time per epoch.
        epochs: Of the whole training.
        state: Whether it waits, runs, is done or has failed.
        epochs_done: Of ``epochs``.
        seconds: What each epoch took.
    """

    kind: str
    epochs: int
    state: State = "waits"
    epochs_done: int = 0
    seconds: list[float] = field(default_factory=list)


class Board(Protocol):
    """What :func:`watching` shows."""

    def look(self) -> None:
        """Find out how far the trainings are."""

    def table(self) -> "Table":
        """All of them, for a terminal."""


def time_left(trainings: Sequence[Progress], at_once: int | None) -> float | None:
    """An estimate of the seconds until all trainings are done.

    Every epoch left takes as long as those of its kind did, or as those of all kinds.

    Args:
        trainings: All of them.
        at_once: How many can run at a time; None for as many as do now.

    Returns:
        None while no epoch is done.

    >>> done = Progress("pamal", 2, "done", 2, [3.0, 3.0])
    >>> time_left([done, Progress("pamal", 2)], at_once=1)
    6.0
    """
    every = [seconds for one in trainings for seconds in one.seconds]
    if not every:
        return None
    left = 0.0
    for one in trainings:
        if one.state in ("waits", "runs"):
            alike = [s for other in trainings if other.kind == one.kind for s in other.seconds]
            known = alike or every
            left += (one.epochs - one.epochs_done) * sum(known) / len(known)
    running = sum(one.state == "runs" for one in trainings)
    unfinished = running + sum(one.state == "waits" for one in trainings)
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


def summary(trainings: Mapping[str, Progress], at_once: int | None) -> str:
    """How many trainings are done, which run, and the time left, on one line.

    Args:
        trainings: By name.
        at_once: How many can run at a time; None for as many as do now.

    >>> summary({"a": Progress("x", 1, "done", 1, [2.0]), "b": Progress("x", 1, "runs")}, 1)
    '1 of 2 done; running: b; about 2 s left'
    """
    of = {s: [name for name, one in trainings.items() if one.state == s] for s in _STATES}
    left = time_left(list(trainings.values()), at_once)
    parts = [f"{len(of['done'])} of {len(trainings)} done"]
    parts += [f"{len(of['failed'])} failed"] if of["failed"] else []
    parts += [f"running: {', '.join(of['runs'])}"] if of["runs"] else []
    # The last epoch is over a little before its run is.
    parts += [f"about {duration(left)} left"] if left and left >= 1 else []
    return "; ".join(parts)


def progress_table(trainings: Mapping[str, Progress], at_once: int | None) -> "Table":
    """What runs and what ended last, for a terminal; waiting ones are counted, not listed.

    Args:
        trainings: By name.
        at_once: How many can run at a time; None for as many as do now.
    """
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    # Not all that ended: a hundred rows fit no screen.
    ended = [(n, one) for n, one in trainings.items() if one.state in ("done", "failed")]
    running = [(n, one) for n, one in trainings.items() if one.state == "runs"]
    rows = Table.grid(padding=(0, 2))
    for name, one in [*ended[-_ENDED_SHOWN:], *running]:
        bar = ProgressBar(total=one.epochs, completed=one.epochs_done, width=24)
        epochs = f"epoch {one.epochs_done}/{one.epochs}"
        rows.add_row(name, bar, epochs, {"runs": "running"}.get(one.state, one.state))
    waiting = sum(one.state == "waits" for one in trainings.values())
    outer = Table.grid()
    outer.add_row(rows)
    outer.add_row(summary(trainings, at_once) + (f"; {waiting} waiting" if waiting else ""))
    return outer


@contextmanager
def watching(board: Board, tells: bool, live: bool) -> Iterator[None]:
    """Look at a board every second inside this context.

    Args:
        board: What to look at.
        tells: Whether the board tells somebody what it notices.
        live: Show its table on standard error instead, which must be a terminal.
    """
    if live:
        from rich.live import Live

        # Results that are piped away do not tear the table apart, and must not be taken into it.
        shown_there = sys.stdout.isatty()
        with Live(
            get_renderable=board.table,
            console=terminal(),
            refresh_per_second=1,
            redirect_stdout=shown_there,
        ):
            yield
    elif tells:
        stop = threading.Event()
        looker = threading.Thread(target=_keep_looking, args=(board, stop), daemon=True)
        looker.start()
        try:
            yield
        finally:
            stop.set()
            looker.join()
    else:
        yield


def _keep_looking(board: Board, stop: threading.Event) -> None:
    """Notice what begins elsewhere, until told to stop."""
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


def teller(tell: Callable[[str], None] | None, live: bool) -> Callable[[str], None]:
    """What a board calls with its lines: nothing where a table shows the same.

    Args:
        tell: Who wants to hear; None for nobody.
        live: Whether there is a table.
    """
    return (lambda line: None) if tell is None or live else tell
