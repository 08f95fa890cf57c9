"""What a person sees while training runs: a bar on a terminal, a line per epoch elsewhere."""

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


def in_notebook() -> bool:
    """Whether a cell of a notebook is being run; never true before IPython was imported."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def progress_stream() -> TextIO:
    """Where lines about progress go: standard error, which a notebook would show as failures."""
    return sys.stdout if in_notebook() else sys.stderr


class Progress(Protocol):
    """Told of every step and of every epoch's end."""

    def step(self) -> None:
        """One step is done."""

    def epoch(self, number: int, losses: Mapping[str, float], hypervolume: float | None) -> None:
        """An epoch is done.

        Args:
            number: Its number, from 1.
            losses: The mean loss of each task, by name.
            hypervolume: That on validation data; None if it was not looked at.
        """


class _Silent:
    """Shows nothing."""

    def step(self) -> None:
        pass

    def epoch(self, number: int, losses: Mapping[str, float], hypervolume: float | None) -> None:
        pass


@contextmanager
def progress_bar(
    enabled: bool, epochs: int, done: int, steps: int, steps_per_epoch: int | None
) -> Iterator[Progress]:
    """A live bar, plain lines when the output is no terminal, or nothing when disabled.

    Args:
        enabled: Whether anything is shown.
        epochs: Of the whole training.
        done: Epochs that were done before, in a run that is resumed.
        steps: Steps that were done of the epoch after those.
        steps_per_epoch: None if that is not known; the bar then has no end.
    """
    if not enabled:
        yield _Silent()
        return
    # rich draws a random number when it is imported; looking on must not change a run.
    drawn = random.getstate()
    from rich import progress
    from rich.console import Console

    random.setstate(drawn)
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(partial(print, file=progress_stream(), flush=True), epochs)
        return
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(compact=True),
        # A task may be called "rate [/s]", which is not markup.
        progress.TextColumn("{task.fields[status]}", markup=False),
    )
    total = None if steps_per_epoch is None else steps_per_epoch * epochs
    with progress.Progress(*columns, console=console) as bar:
        completed = 0 if steps_per_epoch is None else steps_per_epoch * done + steps
        task = bar.add_task(
            f"epoch {done + 1}/{epochs}", total=total, completed=completed, status=""
        )
        yield _Bar(bar, task, epochs)


def describe(losses: Mapping[str, float], hypervolume: float | None) -> str:
    """Mean losses of an epoch and the validation hypervolume, on one line.

    Args:
        losses: By task; from five tasks on, only their mean is shown.
        hypervolume: None for none.

    >>> describe({"left": 0.25, "right": 0.5}, 0.9)
    'left 0.250  right 0.500  hypervolume 0.9000'
    """
    if len(losses) > 4:
        parts = [f"mean loss {sum(losses.values()) / len(losses):.3f}"]
    else:
        parts = [f"{name} {value:.3f}" for name, value in losses.items()]
    if hypervolume is not None:
        # Small ones, as of many tasks, would be 0.0000 with four decimals.
        form = ".4g" if hypervolume < 0.01 else ".4f"
        parts.append(f"hypervolume {hypervolume:{form}}")
    return "  ".join(parts)


class _Lines(_Silent):
    """A line per epoch, for files and pipes."""

    def __init__(self, write: Callable[[str], None], epochs: int) -> None:
        self._write = write
        self._epochs = epochs

    def epoch(self, number: int, losses: Mapping[str, float], hypervolume: float | None) -> None:
        self._write(f"epoch {number}/{self._epochs}  {describe(losses, hypervolume)}")


class _Bar:
    """A bar of all steps, with the last epoch's losses beside it."""

    def __init__(self, bar: "RichProgress", task: "TaskID", epochs: int) -> None:
        self._bar = bar
        self._task = task
        self._epochs = epochs

    def step(self) -> None:
        self._bar.advance(self._task)

    def epoch(self, number: int, losses: Mapping[str, float], hypervolume: float | None) -> None:
        # The one that begins now; after the last one there is none.
        upcoming = min(number + 1, self._epochs)
        self._bar.update(
            self._task,
            description=f"epoch {upcoming}/{self._epochs}",
            status=describe(losses, hypervolume),
        )
