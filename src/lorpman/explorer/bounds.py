"""A demand from the page: what some tasks must reach."""

import math
import shlex
from collections.abc import Mapping
from typing import Any

from lorpman.explorer.opened_run import Opened
from lorpman.explorer.request_guard import Refused
from lorpman.front.front import Front

_LARGEST = 1e12


def demand_of(front: Front, bounds: Mapping[str, float]) -> dict[str, Any]:
    """Keep to ``bounds``, and be best on the tasks without one (on all, if every task has one).

    Several tasks count by their score in units of its range on the front.
    """
    rest = [task for task in front.tasks if task not in bounds] or list(front.tasks)
    demand: dict[str, Any] = {"at_least": {}, "at_most": {}}
    for task, bound in bounds.items():
        demand[front.direction(task).bound][task] = bound
    if len(rest) == 1:
        return demand | {"best": rest[0]}
    weights = {task: weight for task, weight in utility_of(front).items() if task in rest}
    signed = {task: front.direction(task).orient(weight) for task, weight in weights.items()}
    return demand | {"utility": lambda scores: sum(w * scores[t] for t, w in signed.items())}


def utility_of(front: Front) -> dict[str, float]:
    """One over each task's range on the front: what a unit of its score is worth."""
    width = front.scores.amax(0) - front.scores.amin(0)
    return {
        task: float(f"{1 / w:.4g}") if w > 0 else 1.0
        for task, w in zip(front.tasks, width.tolist(), strict=True)
    }


def select_command(run: Opened, bounds: Mapping[str, float]) -> str:
    """The same demand on the command line."""
    front = run.front
    parts = ["lorpman", "select", str(run.path)]
    for task, bound in bounds.items():
        option = front.direction(task).bound.replace("_", "-")
        parts += [f"--{option}", f"{task}={bound:g}"]
    rest = [task for task in front.tasks if task not in bounds] or list(front.tasks)
    if len(rest) == 1:
        parts += ["--best", rest[0]]
    else:
        weights = utility_of(front)
        parts += [part for task in rest for part in ("--utility", f"{task}={weights[task]:g}")]
    return shlex.join(parts)


def read_bounds(front: Front, given: Any) -> dict[str, float] | str:
    """The bounds that were filled in, or what is wrong with them in words."""
    if not isinstance(given, list) or len(given) != len(front.tasks):
        raise Refused(f"bounds are {len(front.tasks)} numbers, or nothing")
    bounds = {}
    for task, value in zip(front.tasks, given, strict=True):
        if value is None or value == "":
            continue
        if type(value) not in (int, float) or not math.isfinite(value):
            raise Refused("a bound is a number")
        if abs(value) > _LARGEST:
            raise Refused("a bound is a number of reasonable size")
        bounds[task] = float(value)
    return bounds or "Fill in what at least one task must reach."
