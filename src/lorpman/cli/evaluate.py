"""``lorpman evaluate``: the front of a run, scored again."""

from typing import TYPE_CHECKING, Annotated

import typer

from lorpman.cli.options import DataDirectory, ProblemOfRun, RunDirectory, read_problem
from lorpman.cli.output import hypervolume_text, order_text, trade_off_text, warn

if TYPE_CHECKING:
    from lorpman.front.front import Front

# More columns than this (a weight and a score per task) fit no terminal.
_MOST_TASKS_IN_TABLE = 5

_Split = Annotated[str, typer.Option(help="train, validation or test")]


def evaluate(
    run: RunDirectory,
    split: _Split = "test",
    data: DataDirectory = None,
    problem: ProblemOfRun = None,
) -> None:
    """Score a trained RUN again, on any split of its data."""
    from lorpman.lab.runs.directory import data_root, epochs_done, read_spec
    from lorpman.lab.runs.evaluation import evaluate_run, save_front

    spec = read_spec(run, read_problem(problem))
    epochs = spec.training.epochs
    front = evaluate_run(run, split, data_root(data), spec.problem)
    if len(front.tasks) <= _MOST_TASKS_IN_TABLE:
        _print_table(front)
    volume = hypervolume_text(front.hypervolume())
    typer.echo(f"{split} hypervolume {volume}  ({len(front)} preferences)")
    if spec.method.kind == "continuous":
        typer.echo(f"order {order_text(front)}")
    if (words := trade_off_text(front, spec.method.name)) is not None:
        typer.echo(f"trade-off: {words}")
    if (done := epochs_done(run)) < epochs:
        warn(f"{run} has done {done} of {epochs} epochs")
    # Last: what cannot be written can still be read above.
    save_front(front, run, split)


def _print_table(front: "Front") -> None:
    """One line per preference: the weights, then the scores."""
    header = [*(f"a_{name}" for name in front.tasks), *front.tasks]
    typer.echo("  ".join(f"{name:>10}" for name in header))
    for alpha, scores in zip(front.alphas.tolist(), front.scores.tolist(), strict=True):
        typer.echo("  ".join(f"{value:>10.4f}" for value in (*alpha, *scores)))
