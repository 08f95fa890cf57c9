"""What some tasks must reach: read from the page, searched for, and said as a command."""

import shlex
from collections.abc import Mapping
from typing import Any

from lorpman.explorer.opened_run import OpenedRun
from lorpman.explorer.request_guard import RequestRefused
from lorpman.front.front import Front

# A guard: float32 scores would overflow beyond 1e38.
_LARGEST = 1e12


def selection_arguments(front: Front, bounds: Mapping[str, float]) -> dict[str, Any]:
    """Keep to ``bounds``, and be best on the tasks without one (on all, if every task has one).

    Several tasks count by their score in units of its range on the front.

    Args:
        front: The front whose tasks are bound.
        bounds: What tasks must reach, by name.

    Returns:
        Keyword arguments of ``Front.select`` and ``lorpman.select``.
    """
    rest = _tasks_to_improve(front, bounds)
    demand: dict[str, Any] = {"at_least": {}, "at_most": {}}
    for task, bound in bounds.items():
        demand[front.direction(task).bound][task] = bound
    if len(rest) == 1:
        return demand | {"best": rest[0]}
    weights = {task: weight for task, weight in score_weights(front).items() if task in rest}
    signed = {task: front.direction(task).orient(weight) for task, weight in weights.items()}
    return demand | {"utility": lambda scores: sum(w * scores[t] for t, w in signed.items())}


def _tasks_to_improve(front: Front, bounds: Mapping[str, float]) -> list[str]:
    """The tasks without a bound; all, if every task has one."""
    return [task for task in front.tasks if task not in bounds] or list(front.tasks)


def score_weights(front: Front) -> dict[str, float]:
    """One over each task's range on the front: what a unit of its score is worth.

    Args:
        front: The front.

    Returns:
        A weight by task; 1 for a task that is the same everywhere.
    """
    width = front.scores.amax(0) - front.scores.amin(0)
    return {
        # As few digits as the command shows, so that it searches for exactly the same.
        task: float(f"{1 / w:.4g}") if w > 0 else 1.0
        for task, w in zip(front.tasks, width.tolist(), strict=True)
    }


def select_command(run: OpenedRun, bounds: Mapping[str, float]) -> str:
    """The ``lorpman select`` that searches for the same.

    Args:
        run: The run that is searched.
        bounds: What tasks must reach, by name.
    """
    front = run.front
    if run.path is None:
        return _select_call(front, bounds)
    parts = ["lorpman", "select", str(run.path)]
    for task, bound in bounds.items():
        option = front.direction(task).bound.replace("_", "-")
        parts += [f"--{option}", f"{task}={bound:g}"]
    rest = _tasks_to_improve(front, bounds)
    if len(rest) == 1:
        parts += ["--best", rest[0]]
    else:
        weights = score_weights(front)
        parts += [part for task in rest for part in ("--utility", f"{task}={weights[task]:g}")]
    return shlex.join(parts)


def _select_call(front: Front, bounds: Mapping[str, float]) -> str:
    """The same in Python, for a model that no directory holds."""
    parts = ["model", "tasks", "loader"]
    for option in ("at_least", "at_most"):
        named = {t: b for t, b in bounds.items() if front.direction(t).bound == option}
        parts += [f"{option}={named}"] if named else []
    rest = _tasks_to_improve(front, bounds)
    if len(rest) == 1:
        parts.append(f"best={rest[0]!r}")
    else:
        weights = score_weights(front)
        signed = {task: front.direction(task).orient(weights[task]) for task in rest}
        parts.append(f"utility=lambda s: sum(w * s[t] for t, w in {signed}.items())")
    return f"lp.select({', '.join(parts)})"


def read_bounds(front: Front, given: Any) -> dict[str, float] | str:
    """Read the fields of the page.

    Args:
        front: The front whose tasks the fields stand for, in order.
        given: What the browser sent: a number, or nothing, per task.

    Returns:
        The bounds that were filled in by task, or a sentence where none was.

    Raises:
        RequestRefused: If that is not what the page sends.
    """
    if not isinstance(given, list) or len(given) != len(front.tasks):
        raise RequestRefused(f"bounds are {len(front.tasks)} numbers, or nothing")
    bounds = {}
    for task, value in zip(front.tasks, given, strict=True):
        if value is None or value == "":
            continue
        # A bool is an int to isinstance, and a mistake here; NaN alone differs from itself.
        if type(value) not in (int, float) or value != value:
            raise RequestRefused("a bound is a number")
        # Before it becomes a float: an int may be larger than any of them.
        if abs(value) > _LARGEST:
            raise RequestRefused("a bound is a number of reasonable size")
        bounds[task] = float(value)
    return bounds or "Fill in what at least one task must reach."
