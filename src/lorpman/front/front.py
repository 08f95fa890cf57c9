"""A front: preferences and the scores they reach, to measure, choose from, draw and keep."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lorpman.errors import UsageError, check_kind, shown, unknown
from lorpman.front.choice import Choice, Utility, choose
from lorpman.front.control import Control, control
from lorpman.front.dominance import non_dominated_mask
from lorpman.front.front_file import read_fields, write_front
from lorpman.front.hypervolume import Hypervolume, hypervolume
from lorpman.front.order import Order, order
from lorpman.preference import as_preference
from lorpman.task import Direction, direction_of, signs


@dataclass(frozen=True, eq=False)
class Front:
    """Preferences and the scores they reach, in each task's own units.

    Args:
        alphas: The preferences, ``[n, m]``.
        scores: What each preference reaches, ``[n, m]``.
        tasks: The names of the m tasks.
        maximise: For each task, whether a bigger score is better.
        reference: For each task, the worst score that hypervolume counts.
        losses: The mean losses at each preference, ``[n, m]``, if they are known.
        label: The name of the method in plots.

    Raises:
        UsageError: If shapes or lengths do not fit, names repeat, or a number is not finite.

    >>> alphas, scores = torch.eye(2), torch.tensor([[0.9, 0.5], [0.5, 0.9]]).double()
    >>> front = Front(alphas, scores, ("left", "right"), (True, True), (0.0, 0.0))
    >>> front.hypervolume()
    Hypervolume(0.65, exact)
    >>> front.select(at_least={"left": 0.8}, best="right").alpha
    tensor([1., 0.])
    """

    alphas: Tensor
    scores: Tensor
    tasks: tuple[str, ...]
    maximise: tuple[bool, ...]
    reference: tuple[float, ...]
    losses: Tensor | None = None
    label: str = ""

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the one place where a frozen field is set
        keep(self, "tasks", _one_per_task("tasks", self.tasks, self.tasks, str))
        keep(self, "maximise", _one_per_task("maximise", self.maximise, self.tasks, bool))
        numbers = _one_per_task("reference", self.reference, self.tasks, (int, float))
        keep(self, "reference", tuple(float(number) for number in numbers))
        if not all(map(math.isfinite, self.reference)):
            raise UsageError(f"reference must be finite, got {list(self.reference)}")
        if len(set(self.tasks)) != len(self.tasks) or not self.tasks:
            raise UsageError(f"tasks must have names that differ, got {list(self.tasks)}")
        # Scores are sums over whole datasets, and differences between them are small; preferences
        # are what networks are asked with, so they keep the type of networks.
        keep(self, "scores", _table("scores", self.scores, torch.float64, len(self.tasks)))
        keep(self, "alphas", _table("alphas", self.alphas, torch.float32, len(self.tasks)))
        tables = {"alphas": self.alphas}
        if self.losses is not None:
            keep(self, "losses", _table("losses", self.losses, torch.float64, len(self.tasks)))
            tables["losses"] = self.losses
        for name, table in tables.items():
            if len(table) != len(self):
                raise UsageError(f"{name} has {len(table)} rows, scores have {len(self)}")
        for name, table in {**tables, "scores": self.scores}.items():
            for row, column in (~table.isfinite()).nonzero()[:1].tolist():
                where = f"row {row}, task '{self.tasks[column]}'"
                raise UsageError(f"{name} must be finite, got {table[row, column]} at {where}")

    def __len__(self) -> int:
        return len(self.scores)

    @cached_property
    def signs(self) -> Tensor:
        """For each task, 1 where a bigger score is better, else -1: ``[m]``."""
        return torch.from_numpy(signs(self.maximise))

    @property
    def gains(self) -> Tensor:
        """The scores turned so that bigger is better for every task, ``[n, m]``."""
        return self.scores * self.signs

    def direction(self, task: str) -> Direction:
        """Which way the score of a task gets better.

        Args:
            task: Its name.

        Raises:
            UsageError: If the front has no such task.
        """
        return direction_of(self.maximise[self.column(task)])

    def column(self, task: str) -> int:
        """The column of a task in alphas, scores and losses.

        Args:
            task: Its name.

        Raises:
            UsageError: If the front has no such task.
        """
        if task not in self.tasks:
            raise unknown("task", task, self.tasks)
        return self.tasks.index(task)

    def has_tasks_of(self, other: "Front") -> bool:
        """Whether scores of both fronts can be compared: the same tasks, better the same way.

        Args:
            other: The other front.
        """
        return (self.tasks, self.maximise) == (other.tasks, other.maximise)

    def hypervolume(self) -> Hypervolume:
        """The volume between reference and scores; computed once, since sampling takes time.

        Raises:
            UsageError: If no float holds the volume.
        """
        return self._volume

    @cached_property
    def _volume(self) -> Hypervolume:
        return hypervolume(self.scores, self.reference, self.maximise)

    def order(self) -> Order:
        """How well the scores follow the preferences: whether more weight on a task is obeyed."""
        return order(self.alphas, self.gains)

    def control(self, retrained: "Front") -> Control:
        """Whether one run is as good as retraining for every preference.

        Args:
            retrained: One network per preference; this front must hold all of these preferences.

        Raises:
            UsageError: If the two do not fit together, or lack losses.
        """
        return control(self, retrained)

    def non_dominated_mask(self) -> Tensor:
        """Which points no other point of the front beats, bool ``[n]``."""
        return non_dominated_mask(self.scores, self.maximise)

    def non_dominated(self) -> "Front":
        """The points that no other point of the front beats."""
        best = self.non_dominated_mask()
        losses = None if self.losses is None else self.losses[best]
        return replace(self, alphas=self.alphas[best], scores=self.scores[best], losses=losses)

    def select(
        self,
        *,
        at_least: Mapping[str, float] | None = None,
        at_most: Mapping[str, float] | None = None,
        best: str | None = None,
        knee: bool = False,
        target: Mapping[str, float] | None = None,
        utility: Utility | None = None,
    ) -> Choice:
        """The point of the grid that keeps the bounds and does one thing best.

        Exactly one of ``best``, ``knee``, ``target`` and ``utility`` says what to do best.
        Distances count each task's range on the front as 1.

        Args:
            at_least: Bounds of tasks where more is better.
            at_most: Bounds of tasks where less is better.
            best: The task whose score is to be best.
            knee: The point farthest out from the plane through the extremes.
            target: Scores of some tasks; the closest point is chosen.
            utility: A function of a point's scores by task; its highest value is chosen.

        Returns:
            The point; where no point keeps the bounds, the one that breaks them least, with
            ``feasible=False``.

        Raises:
            UsageError: If the demand names an unknown task, bounds a task from its better side,
                or asks for none or several of the four.
        """
        bounds = [{} if given is None else given for given in (at_least, at_most)]
        return choose(self, bounds[0], bounds[1], best, knee, target, utility)

    def plot(self, path: str | Path, title: str | None = None) -> None:
        """Draw the front.

        Args:
            path: The file; its suffix picks the format.
            title: What stands above; by default the front's label.

        Raises:
            UsageError: If the suffix is unknown, or the file cannot be written.
        """
        # Imported here: matplotlib is slow, and most fronts are never drawn.
        from lorpman.front.plot import plot_front

        check_kind("path", path, (str, PathLike), "the name of a file")
        check_kind("title", title, (str, type(None)), "a text")
        plot_front(self, path, title)

    def _repr_html_(self) -> str:
        """A table and a picture, for a notebook."""
        from lorpman.front.notebook import front_html

        return front_html(self)

    def save(self, path: str | Path) -> None:
        """Write the front as JSON that people can read and that round-trips exactly.

        Args:
            path: The file.

        Raises:
            UsageError: If the file cannot be written.
        """
        write_front(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Front":
        """Read what :meth:`save` wrote.

        Args:
            path: The file.

        Returns:
            The front.

        Raises:
            UsageError: If the file cannot be read or holds no front; the message names it.
        """
        check_kind("path", path, (str, PathLike), "the name of a file")
        try:
            front = cls(**read_fields(Path(path).read_bytes()))
            # A file may come from anybody: its preferences must lie on the simplex.
            as_preference(front.alphas, len(front.tasks))
            return front
        except OSError as error:
            raise UsageError(f"cannot read front file '{path}': {error.strerror}") from None
        except (TypeError, ValueError, OverflowError, RuntimeError) as error:
            line = " ".join(str(error).split())
            raise UsageError(f"'{path}' is not a front file: {line}; save it again") from None


def worst_and_best(fronts: Sequence[Front]) -> tuple[Tensor, Tensor]:
    """Each task's worst and best score over several fronts.

    Args:
        fronts: Fronts of the same tasks.

    Returns:
        The worst and the best scores, each ``[m]``, in the tasks' own units.
    """
    gains = torch.cat([front.gains for front in fronts])
    turns = fronts[0].signs
    return gains.amin(0) * turns, gains.amax(0) * turns


def _one_per_task(
    name: str, given: Iterable[Any], tasks: Sequence[str], kind: type | tuple[type, ...]
) -> tuple[Any, ...]:
    # A string would pass for a sequence of one-letter names.
    values = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    if len(values) != len(tasks) or not all(isinstance(value, kind) for value in values):
        wanted = "names" if kind is str else "True or False" if kind is bool else "a number"
        raise UsageError(f"{name} must hold {wanted}, one per task, got {shown(given)}")
    return values


def _table(name: str, given: Tensor, dtype: torch.dtype, columns: int) -> Tensor:
    # A copy: a front must not change when the caller's tensor does.
    try:
        table = torch.as_tensor(given).detach()
        if table.is_complex():
            raise TypeError("complex numbers have no order")
        table = table.to("cpu", dtype, copy=True)
    except Exception as error:  # torch has many kinds for what is no table of numbers
        reason = (str(error).splitlines() or [""])[0]
        raise UsageError(f"{name} must be a table of numbers: {reason}") from None
    if table.ndim != 2 or table.shape[1] != columns or len(table) == 0:
        expected = f"[n, {columns}], one row per point and one column per task"
        raise UsageError(f"{name} must have shape {expected}, got {list(table.shape)}")
    return table
