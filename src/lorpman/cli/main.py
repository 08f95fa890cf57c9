"""The command line. Bad input is one line on standard error and exit code 2."""

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lorpman.cli import bench, explore, export, report, reproduce, select, tune
from lorpman.cli.options import (
    DataDirectory,
    ProblemName,
    Quiet,
    Recipe,
    RunDirectory,
    Scale,
    Settings,
    read_parts,
    read_seeds,
)
from lorpman.errors import ProcessLost, TrainingDiverged, TrainingInterrupted, UsageError

if TYPE_CHECKING:
    from lorpman.front.front import Front

Preferences = Literal["own", "same"]

app = typer.Typer(
    name="lorpman",
    help="Choose the trade-off between tasks after training: learn a whole Pareto front of "
    "networks in one run, look at it, and take away the network you need.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from lorpman import __version__

        typer.echo(__version__)
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def problems() -> None:
    """List the problems that can be trained."""
    from lorpman.lab.problems.registry import PROBLEMS, get_problem

    for name in PROBLEMS:
        typer.echo(f"{name:<14}{get_problem(name).summary}")


@app.command()
def methods() -> None:
    """List the methods that a problem can be trained with."""
    from lorpman.lab.methods.registry import METHODS

    for name, method in METHODS.items():
        typer.echo(f"{name:<14}{method.kind:<12}{method.summary}")


@app.command()
def data(problem: ProblemName, data: DataDirectory = None) -> None:
    """Fetch and check the files of PROBLEM, or say which ones to put where."""
    from lorpman.lab.datasets.sources import SOURCES, obtain
    from lorpman.lab.problems.registry import get_problem
    from lorpman.lab.runs.directory import data_root

    get_problem(problem)
    if problem not in SOURCES:
        typer.echo(f"{problem} needs no files")
    else:
        typer.echo(obtain(problem, data_root(data)))


@app.command()
def train(
    problem: ProblemName,
    method: Annotated[str, typer.Option(help="See: lorpman methods")] = "lorpman",
    epochs: Annotated[
        int | None, typer.Option(help="Passes over the data [default: the preset's]")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, help="Repeats a run bit by bit on the CPU.")
    ] = 0,
    data: DataDirectory = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Where to write [runs/PROBLEM-METHOD-SEED]"),
    ] = None,
    set_: Settings = None,
    recipe: Recipe = None,
    scale: Scale = "paper",
    resume: Annotated[bool, typer.Option("--resume", help="Continue where RUN stopped.")] = False,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(metavar="STEPS", help="Save also within epochs, every so many steps."),
    ] = None,
    devices: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
    nodes: Annotated[int, typer.Option(help="Machines; start the command on each.")] = 1,
    strategy: Annotated[str, typer.Option(help="auto or ddp")] = "auto",
    precision: Annotated[
        str, typer.Option(help="32-true, 64-true, bf16-true, bf16-mixed or 16-mixed")
    ] = "32-true",
    compiled: Annotated[
        bool, typer.Option("--compile", help="Run the networks through torch.compile.")
    ] = False,
    preferences: Annotated[
        Preferences, typer.Option(help="Of several processes: each its own, or all the same.")
    ] = "own",
    logger: Annotated[
        list[str] | None,
        typer.Option(help="csv or tensorboard, beside metrics.jsonl; repeatable."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train PROBLEM with METHOD, and write the front to a run directory."""
    from lorpman.lab.runs.directory import data_root
    from lorpman.lab.runs.spec import Spec
    from lorpman.lab.runs.train import train as train_run
    from lorpman.lab.settings import parse_assignments
    from lorpman.training.devices import Engine

    overrides: dict[str, Any] = parse_assignments(set_ or [])
    if epochs is not None:
        overrides["epochs"] = epochs
    spec = Spec.make(problem, method, seed, overrides, scale, recipe)
    out = out or Path("runs") / f"{problem}-{method}-{seed}"
    result = train_run(
        spec,
        out,
        data_root(data),
        resume=resume,
        progress=not quiet,
        checkpoint_every=checkpoint_every,
        engine=Engine(devices, nodes, strategy, precision, preferences == "own", compiled),
        loggers=logger or [],
    )
    volume = result.front.hypervolume()
    parameters, one, m = (
        result.model.num_parameters(),
        result.network_parameters,
        result.model.num_tasks,
    )
    typer.echo(f"test hypervolume  {_volume(volume)}  ({len(result.front)} preferences)")
    if spec.method.kind == "continuous":
        typer.echo(f"order             {_order(result.front)}")
    typer.echo(
        f"parameters        {parameters:,}  (one network: {one:,}; "
        f"PaMaL, one network per task: {m * one:,})"
    )
    typer.echo(f"training time     {result.seconds:.0f} s")
    if spec.scale == "laptop":
        typer.echo("scale             laptop: a stated reduction, not the paper's protocol")
    if result.note:
        typer.echo(f"data              {result.note}")
    freeze = spec.training.freeze_epoch
    if freeze is not None and freeze >= spec.training.epochs:
        _tell(f"the main network was never frozen: freeze_epoch is {freeze}")
    typer.echo(f"front             {out / 'front.json'}")
    typer.echo(f"picture           {out / 'front.png'}")


@app.command()
def evaluate(
    run: RunDirectory,
    split: Annotated[str, typer.Option(help="train, validation or test")] = "test",
    data: DataDirectory = None,
) -> None:
    """Score a trained RUN again, on any split of its data."""
    from lorpman.lab.runs.directory import data_root, epochs_done, read_spec
    from lorpman.lab.runs.evaluation import evaluate_run, save_front

    spec = read_spec(run)
    epochs = spec.training.epochs
    front = evaluate_run(run, split, data_root(data))
    header = [*(f"a_{name}" for name in front.tasks), *front.tasks]
    if len(front.tasks) <= 5:
        typer.echo("  ".join(f"{name:>10}" for name in header))
        for alpha, scores in zip(front.alphas.tolist(), front.scores.tolist(), strict=True):
            typer.echo("  ".join(f"{value:>10.4f}" for value in (*alpha, *scores)))
    typer.echo(f"{split} hypervolume {_volume(front.hypervolume())}  ({len(front)} preferences)")
    if spec.method.kind == "continuous":
        typer.echo(f"order {_order(front)}")
    if (done := epochs_done(run)) < epochs:
        _tell(f"{run} has done {done} of {epochs} epochs")
    # Last: what cannot be written can still be read above.
    save_front(front, run, split)


@app.command()
def compare(
    problem: ProblemName,
    methods: Annotated[str, typer.Option(help="Comma-separated; see: lorpman methods")] = "lorpman",
    seeds: Annotated[str, typer.Option(help="Comma-separated whole numbers.")] = "0,1,2",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where runs are [runs/compare/PROBLEM]")
    ] = None,
    data: DataDirectory = None,
    scale: Scale = "paper",
    recipe: Recipe = None,
    set_: Settings = None,
    quiet: Quiet = False,
) -> None:
    """Train PROBLEM with several methods, unless that is done, and write one table."""
    from lorpman.lab.compare import compare as compare_runs
    from lorpman.lab.runs.directory import data_root
    from lorpman.lab.settings import parse_assignments

    folder = out or Path("runs") / "compare" / problem
    table = compare_runs(
        problem,
        read_parts(methods, "--methods"),
        read_seeds(seeds),
        folder,
        data_root(data),
        scale=scale,
        recipe=recipe,
        overrides=parse_assignments(set_ or []),
        tell=None if quiet else lambda line: typer.echo(line, err=True),
    )
    typer.echo(table.markdown())
    typer.echo(f"table    {folder / 'comparison.md'}\npicture  {folder / 'comparison.png'}")


for command in (
    select.select,
    export.export,
    explore.explore,
    report.report,
    tune.tune,
    reproduce.reproduce,
    bench.bench,
):
    app.command()(command)


def _tell(line: str) -> None:
    typer.echo(f"lorpman: {line}", err=True)


def _volume(volume: Any) -> str:
    digits = ".4f" if volume >= 0.01 or volume == 0 else ".4g"
    error = "" if volume.stderr == 0 else f" ± {volume.stderr:.1g}"
    return f"{float(volume):{digits}}{error}"


def _order(front: "Front") -> str:
    found = front.order()
    where = f"{found.violations} of {found.pairs} pairs of preferences"
    return f"{found.correlation:.2f}  (more weight scores worse in {where})"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    warnings.showwarning = _warn
    try:
        code = app(arguments, standalone_mode=False)
    except typer.Exit as error:
        code = error.exit_code
    except typer.Abort:
        code = _interrupted()
    except typer.TyperException as error:
        code = _refuse(error.format_message())
    except (UsageError, TrainingDiverged) as error:
        code = _refuse(str(error))
    except ProcessLost as error:
        typer.echo(f"lorpman: {error}", err=True)
        sys.stderr.flush()
        # Not by the usual way out, where what is left of the connection may abort the process.
        os._exit(error.code)
    except TrainingInterrupted as error:
        typer.echo(f"lorpman: {error}", err=True)
        code = error.code
    except KeyboardInterrupt:
        code = _interrupted()
    sys.exit(code if isinstance(code, int) else 0)


def _warn(message: Warning | str, *where: Any, **more: Any) -> None:
    """Our own warnings are for the user; others are not."""
    del where, more
    from lorpman.training.checkpoint import CheckpointWarning

    if isinstance(message, CheckpointWarning):
        typer.echo(f"lorpman: {message}", err=True)


def _interrupted() -> int:
    typer.echo("lorpman: interrupted", err=True)
    return 130


def _refuse(message: str) -> int:
    typer.echo("lorpman: " + " ".join(message.split()), err=True)
    return 2
