"""A front: preferences and the scores they reach, to measure, choose from, draw and keep."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lorpman._files import write_bytes
from lorpman.errors import UsageError, unknown
from lorpman.front.hypervolume import Hypervolume, hypervolume, non_dominated_mask
from lorpman.front.order import Order, order

FORMAT = "lorpman-front/1"
Utility = Callable[[dict[str, float]], float]


@dataclass(frozen=True, eq=False)
class Choice:
    """One point of a front. ``feasible`` is False where no point keeps the bounds asked for."""

    alpha: Tensor
    scores: dict[str, float]
    index: int
    feasible: bool


@dataclass(frozen=True, eq=False)
class Front:
    """``alphas [n, m]`` and the ``scores [n, m]`` they reach, in each task's own units.

    ``maximise`` and ``reference`` hold one entry per task; ``losses [n, m]`` and ``label``, the
    name of the method in plots, are optional.

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
        keep(self, "scores", _table("scores", self.scores, torch.float64, len(self.tasks)))
        keep(self, "alphas", _table("alphas", self.alphas, torch.float32, len(self.tasks)))
        tables = {"alphas": self.alphas}
        if self.losses is not None:
            keep(self, "losses", _table("losses", self.losses, torch.float64, len(self.tasks)))
            tables["losses"] = self.losses
        for name, table in tables.items():
            if len(table) != len(self):
                raise UsageError(f"{name} has {len(table)} rows, scores have {len(self)}")
        for name, table in (("alphas", self.alphas), ("scores", self.scores)):
            for row, column in (~table.isfinite()).nonzero()[:1].tolist():
                where = f"row {row}, task '{self.tasks[column]}'"
                raise UsageError(f"{name} must be finite, got {table[row, column]} at {where}")

    def __len__(self) -> int:
        return len(self.scores)

    def hypervolume(self) -> Hypervolume:
        """The volume between reference and scores; computed once, since sampling takes time."""
        return self._volume

    @cached_property
    def _volume(self) -> Hypervolume:
        return hypervolume(self.scores, self.reference, self.maximise)

    def order(self) -> Order:
        """How well the scores follow the preferences: is more weight on a task obeyed?"""
        sign = torch.where(torch.tensor(self.maximise), 1.0, -1.0)
        return order(self.alphas, self.scores * sign)

    def non_dominated(self) -> "Front":
        """The points that no other point of the front beats."""
        best = non_dominated_mask(self.scores, self.maximise)
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

        ``at_least`` bounds tasks where more is better, ``at_most`` those where less is. Then
        either the ``best`` score of one task, the ``knee`` (farthest out from the plane through
        the extremes), the point closest to ``target``, or the highest ``utility(scores)``.
        Distances count each task's range on the front as 1. Where no point keeps the bounds,
        the one that breaks them least is returned, with ``feasible=False``.
        """
        goal = self._goal(best, knee, target, utility)
        for name, bounds, bigger in (("at_least", at_least, True), ("at_most", at_most, False)):
            self._check_direction(name, bounds or {}, bigger)
        bounds = {**(at_least or {}), **(at_most or {})}
        broken = self._short_of(bounds).clamp(min=0.0).sum(dim=1)
        # Among equals, the point that is better on the whole: it is not dominated.
        worth = (self.scores / self._widths).sum(dim=1)
        ranks = torch.stack([-broken, goal, worth], dim=1).tolist()
        index = max(range(len(self)), key=ranks.__getitem__)
        scores = dict(zip(self.tasks, self.scores[index].tolist(), strict=True))
        return Choice(self.alphas[index].clone(), scores, index, broken[index].item() == 0.0)

    def plot(self, path: str | Path, title: str | None = None) -> None:
        """Draw the front into ``path``; the suffix picks the format."""
        from lorpman.front.plot import plot_front

        plot_front(self, path, title)

    def save(self, path: str | Path) -> None:
        """Write the front as JSON that people can read and that round-trips exactly."""
        write_bytes(path, _to_json(self).encode())

    @classmethod
    def load(cls, path: str | Path) -> "Front":
        """Read what :meth:`save` wrote; anything else is an error that names the file."""
        try:
            return cls(**_from_json(Path(path).read_bytes()))
        except OSError as error:
            raise UsageError(f"cannot read front file '{path}': {error.strerror}") from None
        except (TypeError, ValueError) as error:
            line = " ".join(str(error).split())
            raise UsageError(f"'{path}' is not a front file: {line}; save it again") from None

    def _column(self, task: str) -> int:
        if task not in self.tasks:
            raise unknown("task", task, self.tasks)
        return self.tasks.index(task)

    @cached_property
    def _widths(self) -> Tensor:
        """Each task's range on the front ``[m]``, negative where smaller is better.

        Differences of scores divided by it are orientation-free, and of the same scale.
        """
        best = self.scores[non_dominated_mask(self.scores, self.maximise)]
        width = best.amax(dim=0) - best.amin(dim=0)
        width[width == 0.0] = 1.0  # a task that no preference changes: keep its own unit
        return torch.where(torch.tensor(self.maximise), width, -width)

    def _goal(
        self,
        best: str | None,
        knee: bool,
        target: Mapping[str, float] | None,
        utility: Utility | None,
    ) -> Tensor:
        """What to maximise over the points: ``[n]``."""
        asked = (best is not None) + knee + (target is not None) + (utility is not None)
        if asked != 1:
            fix = "one of best='task', knee=True, target={...} or utility=function"
            raise UsageError(f"select needs exactly {fix}, got {asked} of them")
        if best is not None:
            return -self._short_of({best: 0.0})[:, 0]
        if target is not None:
            if not target:
                raise UsageError("target names no task; pass target={'task': score}")
            return -self._short_of(target).norm(dim=1)
        if utility is None:
            # The plane through the extremes of the front is sum = const in these units.
            return (self.scores / self._widths).sum(dim=1)
        rows = (dict(zip(self.tasks, row, strict=True)) for row in self.scores.tolist())
        values = torch.tensor([float(utility(row)) for row in rows], dtype=torch.float64)
        if values.isnan().any():
            raise UsageError("utility must return a number for every point, got nan")
        return values

    def _short_of(self, wanted: Mapping[str, float]) -> Tensor:
        """How far each point falls short of ``wanted``, in ranges of the front: ``[n, k]``."""
        for task, value in wanted.items():
            if not math.isfinite(value):
                raise UsageError(f"the bound or target of '{task}' must be finite, got {value}")
        columns = [self._column(task) for task in wanted]
        values = torch.tensor(list(wanted.values()), dtype=torch.float64)
        return (values - self.scores[:, columns]) / self._widths[columns]

    def _check_direction(self, name: str, bounds: Mapping[str, float], bigger: bool) -> None:
        for task, bound in bounds.items():
            if self.maximise[self._column(task)] != bigger:
                better, other = ("smaller", "at_most") if bigger else ("bigger", "at_least")
                fix = f"pass {other}={{'{task}': {bound}}}"
                raise UsageError(f"{name} cannot bound '{task}', where {better} is better; {fix}")


def _one_per_task(
    name: str, given: Iterable[Any], tasks: Sequence[str], kind: type | tuple[type, ...]
) -> tuple[Any, ...]:
    values = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else ()
    if len(values) != len(tasks) or not all(isinstance(value, kind) for value in values):
        wanted = "names" if kind is str else "True or False" if kind is bool else "a number"
        raise UsageError(f"{name} must hold {wanted}, one per task, got {given!r}")
    return values


def _table(name: str, given: Tensor, dtype: torch.dtype, columns: int) -> Tensor:
    # A copy: a front must not change when the caller's tensor does.
    table = torch.as_tensor(given).detach().to("cpu", dtype, copy=True)
    if table.ndim != 2 or table.shape[1] != columns or len(table) == 0:
        expected = f"[n, {columns}], one row per point and one column per task"
        raise UsageError(f"{name} must have shape {expected}, got {list(table.shape)}")
    return table


def _to_json(front: Front) -> str:
    """One line per point; the hypervolume is there for readers without lorpman."""
    try:
        volume = dict(zip(("value", "stderr", "method"), front.hypervolume(), strict=True))
    except UsageError:  # a volume that no float holds must not keep the scores from being saved
        volume = {}
    parts: dict[str, Any] = {"format": FORMAT, "label": front.label, "tasks": front.tasks}
    parts |= {"maximise": front.maximise, "reference": front.reference, "hypervolume": volume}
    lines = [f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in parts.items()]
    for key, table in (
        ("alphas", front.alphas),
        ("scores", front.scores),
        ("losses", front.losses),
    ):
        if table is not None:
            # numpy's str is the shortest text that gives the same float32 or float64 back.
            rows = [", ".join(_number(str(x)) for x in row) for row in table.numpy()]
            body = ",\n".join(f"    [{row}]" for row in rows)
            lines.append(f'  "{key}": [\n{body}\n  ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _number(text: str) -> str:
    return text if math.isfinite(float(text)) else "null"


def _from_json(content: bytes) -> dict[str, Any]:
    """The fields of a front; a ValueError or TypeError says what is wrong."""
    try:
        document = json.loads(content)
    except ValueError as error:
        raise UsageError(f"no valid JSON, perhaps cut short ({error})") from None
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise UsageError(f"its format is {found!r}, expected '{FORMAT}'")
    needed = ("alphas", "scores", "tasks", "maximise", "reference")
    missing = [key for key in needed if document.get(key) is None]
    if missing:
        raise UsageError(f"it lacks {', '.join(missing)}")
    fields = {key: document[key] for key in needed} | {"label": str(document.get("label", ""))}
    for key in ("alphas", "scores", "losses"):
        if document.get(key) is not None:
            rows = [[math.nan if x is None else x for x in row] for row in document[key]]
            fields[key] = torch.tensor(rows, dtype=torch.float64)
    return fields
