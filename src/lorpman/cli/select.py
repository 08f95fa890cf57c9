"""``lorpman select``: a demand in, a preference out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lorpman.cli.options import (
    DataDirectory,
    ProblemOfRun,
    RunDirectory,
    read_problem,
    read_scores,
)
from lorpman.cli.output import print_field, scores_text
from lorpman.errors import UsageError

if TYPE_CHECKING:
    from lorpman.front.choice import Utility
    from lorpman.front.front import Front
    from lorpman.front.select import Selection
    from lorpman.task import Task

_Bounds = Annotated[
    list[str] | None, typer.Option(metavar="TASK=SCORE", help="A bound; repeatable.")
]
_Best = Annotated[str | None, typer.Option(metavar="TASK", help="The best score of this task.")]
_Knee = Annotated[
    bool, typer.Option("--knee", help="Farthest out from the plane through the extremes.")
]
_Target = Annotated[
    list[str] | None,
    typer.Option(metavar="TASK=SCORE", help="Closest to these scores; repeatable."),
]
_Weights = Annotated[
    list[str] | None,
    typer.Option(metavar="TASK=WEIGHT", help="The best weighted sum of scores; repeatable."),
]
_Evaluations = Annotated[
    int, typer.Option(help="Networks to score beyond the grid; 0: the grid alone.")
]


def select(
    run: RunDirectory,
    at_least: _Bounds = None,
    at_most: _Bounds = None,
    best: _Best = None,
    knee: _Knee = False,
    target: _Target = None,
    utility: _Weights = None,
    evaluations: _Evaluations = 40,
    data: DataDirectory = None,
    problem: ProblemOfRun = None,
) -> None:
    """Choose a preference on validation data, and report it on test data."""
    # Checked here too, in the words of the command line, and before a run is opened.
    goals = (best is not None) + knee + bool(target) + bool(utility)
    if goals != 1:
        raise UsageError(
            "select needs exactly one of --best TASK, --knee, --target TASK=SCORE or "
            f"--utility TASK=WEIGHT, got {goals}"
        )
    demand: dict[str, Any] = {
        "at_least": read_scores("--at-least", at_least or []),
        "at_most": read_scores("--at-most", at_most or []),
        "best": best,
        "knee": knee,
        "target": read_scores("--target", target) if target else None,
    }
    weights = read_scores("--utility", utility) if utility else None
    selection, tested = _select_and_test(run, problem, data, demand, weights, evaluations)
    _print_selection(selection, tested)


def _select_and_test(
    run: Path,
    problem: str | None,
    data: Path | None,
    demand: dict[str, Any],
    weights: dict[str, float] | None,
    evaluations: int,
) -> "tuple[Selection, Front]":
    """The preference that validation data prefers, and its scores on test data."""
    from lorpman.front.evaluate import evaluate
    from lorpman.front.select import select as search
    from lorpman.lab.datasets.splits import batches
    from lorpman.lab.runs.directory import data_root, open_run
    from lorpman.lab.runs.evaluation import EVALUATION_BATCH

    spec, model = open_run(run, read_problem(problem))
    tasks = spec.tasks()
    demand["utility"] = None if weights is None else _weighted(weights, tasks)
    splits = spec.load(data_root(data))
    validation = batches(splits.validation, EVALUATION_BATCH)
    selection = search(model, tasks, validation, evaluations=evaluations, **demand)
    alpha = selection.choice.alpha[None]
    return selection, evaluate(model, tasks, batches(splits.test, EVALUATION_BATCH), alpha)


def _weighted(weights: dict[str, float], tasks: "Sequence[Task]") -> "Utility":
    """A sum of scores; a score where less is better counts against it."""
    from lorpman.errors import unknown

    directions = {task.name: task.direction for task in tasks}
    for task, weight in weights.items():
        if task not in directions:
            raise unknown("task", task, directions)
        if not 0 <= weight < float("inf"):
            raise UsageError(f"--utility {task}: a weight must be 0 or more, got {weight}")
    if not any(weights.values()):
        raise UsageError("--utility needs a weight above 0")
    signed = {task: directions[task].orient(w) for task, w in weights.items()}
    return lambda scores: sum(weight * scores[task] for task, weight in signed.items())


def _print_selection(selection: "Selection", tested: "Front") -> None:
    """The preference, its scores, and how many networks were scored to find it."""
    choice = selection.choice
    if not choice.feasible:
        typer.echo("no preference keeps the bounds on validation data; this one is nearest")
    print_field("alpha", ",".join(f"{weight:.6g}" for weight in choice.alpha.tolist()))
    print_field("validation", scores_text(choice.scores))
    on_test = dict(zip(tested.tasks, tested.scores[0].tolist(), strict=True))
    print_field("test", scores_text(on_test))
    where = "grid and search" if selection.refined else "grid only"
    print_field("evaluations", f"{selection.evaluations} networks on validation data ({where})")
