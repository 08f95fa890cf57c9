"""``lorpman train``: one run of one method.

To add an option: name its type and help below, take it as an argument of :func:`train`, and pass
it on to the ``Spec`` (what is trained), the ``Engine`` (on what) or the run (where and how often
something is written).
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lorpman.cli.options import (
    DataDirectory,
    MethodName,
    ProblemName,
    Quiet,
    Recipe,
    Scale,
    Seed,
    Settings,
    read_overrides,
)
from lorpman.cli.output import hypervolume_text, order_text, print_field, trade_off_text, warn

if TYPE_CHECKING:
    from lorpman.lab.runs.spec import Spec
    from lorpman.lab.runs.train import Result

_Epochs = Annotated[int | None, typer.Option(help="Passes over the data [default: the preset's]")]
_Out = Annotated[
    Path | None, typer.Option(metavar="RUN", help="Where to write [runs/PROBLEM-METHOD-SEED]")
]
_Resume = Annotated[bool, typer.Option("--resume", help="Continue where RUN stopped.")]
_CheckpointEvery = Annotated[
    int | None, typer.Option(metavar="STEPS", help="Save also within epochs, every so many steps.")
]
_Devices = Annotated[int, typer.Option(help="Processes on this machine.")]
_Nodes = Annotated[int, typer.Option(help="Machines; start the command on each.")]
_Strategy = Annotated[str, typer.Option(help="auto or ddp")]
_Precision = Annotated[
    str, typer.Option(help="32-true, 64-true, bf16-true, bf16-mixed or 16-mixed")
]
_Compile = Annotated[
    bool, typer.Option("--compile", help="Run the networks through torch.compile.")
]
_Preferences = Annotated[
    Literal["own", "same"],
    typer.Option(help="Of several processes: each its own, or all the same."),
]
_Loggers = Annotated[
    list[str] | None, typer.Option(help="csv or tensorboard, beside metrics.jsonl; repeatable.")
]


def train(
    problem: ProblemName,
    method: MethodName = "lorpman",
    epochs: _Epochs = None,
    seed: Seed = 0,
    data: DataDirectory = None,
    out: _Out = None,
    set_: Settings = None,
    recipe: Recipe = None,
    scale: Scale = "paper",
    resume: _Resume = False,
    checkpoint_every: _CheckpointEvery = None,
    devices: _Devices = 1,
    nodes: _Nodes = 1,
    strategy: _Strategy = "auto",
    precision: _Precision = "32-true",
    compiled: _Compile = False,
    preferences: _Preferences = "own",
    logger: _Loggers = None,
    quiet: Quiet = False,
) -> None:
    """Train PROBLEM with METHOD, and write the front to a run directory."""
    from lorpman.lab.runs.directory import data_root
    from lorpman.lab.runs.spec import Spec
    from lorpman.lab.runs.train import train as train_run
    from lorpman.training.devices import Engine

    spec = Spec.make(problem, method, seed, read_overrides(set_, epochs), scale, recipe)
    out = out or Path("runs") / f"{spec.problem.name}-{method}-{seed}"
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
    _print_result(spec, result, out)


def _print_result(spec: "Spec", result: "Result", out: Path) -> None:
    """What the run reached and what it cost, one line each."""
    front, width = result.front, 18
    volume = hypervolume_text(front.hypervolume())
    print_field("test hypervolume", f"{volume}  ({len(front)} preferences)", width)
    # Weights that lie between those of separate networks are obeyed by none of them.
    if spec.method.kind == "continuous":
        print_field("order", order_text(front), width)
    if (words := trade_off_text(front, spec.method.name)) is not None:
        print_field("trade-off", words, width)
    learned, one_network = result.model.num_parameters(), result.network_parameters
    all_networks = result.model.num_tasks * one_network
    print_field(
        "parameters",
        f"{learned:,}  (one network: {one_network:,}; "
        f"PaMaL, one network per task: {all_networks:,})",
        width,
    )
    print_field("training time", f"{result.seconds:.0f} s", width)
    if spec.scale == "laptop":
        print_field("scale", "laptop: a stated reduction, not the paper's protocol", width)
    if result.note:
        print_field("data", result.note, width)
    freeze = spec.training.freeze_epoch
    if freeze is not None and freeze >= spec.training.epochs:
        warn(f"the main network was never frozen: freeze_epoch is {freeze}")
    print_field("front", out / "front.json", width)
    print_field("picture", out / "front.png", width)
