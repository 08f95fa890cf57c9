"""Training a problem with a method into a run directory."""

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from lorpman._files import locked_folder, owning
from lorpman.front.evaluate import evaluate
from lorpman.front.front import Front
from lorpman.front.plot_ranks import plot_ranks
from lorpman.lab.datasets.process_shares import samples_per_batch, shared_batches
from lorpman.lab.datasets.splits import Splits, batches, first_batches
from lorpman.lab.runs.directory import check_free, claimed, made_directory
from lorpman.lab.runs.epoch_log import EpochLog
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.lab.runs.loggers import make_loggers
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.trial import try_out
from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank
from lorpman.preference import grid
from lorpman.training.devices import Engine, is_first_process
from lorpman.training.fit import Epoch, fit
from lorpman.training.lost_processes import end_other_processes, one_line_for_lost_processes
from lorpman.training.options import Checkpoints, Placement, Validation


@dataclass(frozen=True)
class Result:
    """What training left behind."""

    model: Manifold
    """With the trained weights."""
    front: Front
    """On the test split."""
    network_parameters: int
    """Of the network at one preference."""
    seconds: float
    """Spent on all epochs together."""
    note: str
    """How the data differs from the official splits, if it does."""


def train(
    spec: Spec,
    out: Path,
    root: Path,
    *,
    resume: bool = False,
    progress: bool = True,
    checkpoint_every: int | None = None,
    engine: Engine | None = None,
    loggers: Sequence[str] = (),
) -> Result:
    """Train ``spec`` into the directory ``out``, evaluate it on the test split, draw it.

    Args:
        spec: What decides the run's numbers.
        out: The run directory; made if it is not there.
        root: Where datasets are.
        resume: Continue the run that ``out`` holds.
        progress: Whether to show it on standard error.
        checkpoint_every: Steps between checkpoints within an epoch; None for none.
        engine: Devices, processes and precision; None for one process.
        loggers: "csv" or "tensorboard", beside the run's own log.

    Returns:
        The model, its test front, and what training took.

    Raises:
        UsageError: If ``out`` holds something else, or settings, data and machine do not fit.
        TrainingDiverged: If a loss becomes NaN or infinite.
        TrainingInterrupted: If a signal ended training, after a checkpoint.
    """
    engine = engine or Engine()
    engine.check_environment()
    engine.check_batch(spec.training.batch_size)
    checkpoints = Checkpoints(out / "checkpoint.safetensors", checkpoint_every, resume)
    watchers = make_loggers(loggers, out)
    first = is_first_process()
    # Before the data is loaded, which may take minutes: most mistakes are found here.
    if first:
        check_free(out, spec, engine, resume)
    splits, model = _make_ready(spec, root, engine, first)
    # Left in reverse order: the claim, the lock, the folders that stayed empty.
    with ExitStack() as alone:
        if first:
            alone.enter_context(made_directory(out))
            fix = "wait for its end, or choose another --out"
            in_use = f"{out} is in use by another training; {fix}"
            alone.enter_context(locked_folder(out, in_use))
            # Another training may have come and gone while the data was loaded.
            check_free(out, spec, engine, resume)
            alone.enter_context(claimed(out, spec, model, engine))
        else:
            alone.enter_context(owning(out))  # the first process has checked that it may
        # Not earlier: other processes are worth starting only once the directory is ours.
        fabric = engine.start(watchers)
        with one_line_for_lost_processes(fabric):
            log = None
            if fabric.is_global_zero:
                log = EpochLog(out / "metrics.jsonl", spec.problem, model, fabric)
            fit_spec(
                spec,
                model,
                splits,
                placement=Placement(fabric, engine.own_preferences, engine.compiled),
                checkpoint=checkpoints,
                progress=progress,
                on_epoch=None if log is None else log.add,
            )
            end_other_processes(fabric)
        assert log is not None  # only the first process is still here
        front = _write_front(spec, model, splits, log, out)
    network = model.solution(model.preferences()[0])
    count = sum(p.numel() for p in network.parameters())
    return Result(model, front, count, log.seconds(), splits.note)


def _make_ready(spec: Spec, root: Path, engine: Engine, first: bool) -> tuple[Splits, Manifold]:
    """The data and the untrained manifold; the first process checks whether they fit together."""
    splits = spec.load(root)
    # Where no setting says it, only the data does.
    engine.check_batch(spec.training.batch_size or samples_per_batch(splits.train))
    if first:
        try_out(spec, splits, root)
    model = spec.build()
    check_freezing(spec, model)
    return splits, model


def _write_front(spec: Spec, model: Manifold, splits: Splits, log: EpochLog, out: Path) -> Front:
    """Score the trained model on the test split, and write its front and its pictures."""
    loader = batches(splits.test, EVALUATION_BATCH)
    front = evaluate(model, spec.tasks(), loader, label=spec.method.name)
    front.save(out / "front.json")
    front.plot(out / "front.png")
    if spec.problem.figure is not None:
        spec.problem.figure(log.read(), front, out / f"{spec.problem.name}.png")
    if isinstance(model, LowRank) and model.budget is not None:
        plot_ranks(model, out / "ranks.png")
    return front


def fit_spec(
    spec: Spec,
    model: Manifold,
    splits: Splits,
    *,
    placement: Placement,
    checkpoint: Checkpoints | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> list[Epoch]:
    """Train ``model`` with the settings of ``spec``, without writing anything but checkpoints.

    Args:
        spec: The settings.
        model: What ``spec.build()`` gave.
        splits: What ``spec.load(root)`` gave.
        placement: Devices, processes and precision.
        checkpoint: Where to save, and whether to resume.
        progress: Whether to show it on standard error.
        on_epoch: Called with every epoch's record by the first process.

    Returns:
        One record per epoch that was trained.

    Raises:
        UsageError: If settings, data and model do not fit together.
        TrainingDiverged: If a loss becomes NaN or infinite.
        TrainingInterrupted: If a signal ended training, after a checkpoint.
    """
    assert placement.fabric is not None
    training = spec.training
    # A generator of its own: the order of the data must not depend on what else is drawn.
    order = torch.Generator().manual_seed(spec.seed)
    rank, world = placement.fabric.global_rank, placement.fabric.world_size
    # For transforms that draw from Python or numpy; checkpoints hold these states too. Not earlier,
    # since packages draw random numbers while they are imported.
    random.seed(spec.seed)
    np.random.seed(spec.seed % 2**32)  # noqa: NPY002
    return fit(
        model,
        spec.tasks(),
        shared_batches(splits.train, training.batch_size, order, rank, world),
        epochs=training.epochs,
        objective=spec.method.rule(spec.own),
        window=training.window,
        concentration=training.concentration,
        sampler=spec.sampler(),
        freeze_epoch=training.freeze_epoch,
        freeze_heads=training.freeze_heads,
        optimizer=training.make_optimizer(),
        scheduler=training.make_scheduler(),
        averaging=training.averaging,
        validation=_validation(spec, model, splits),
        seed=spec.seed,
        placement=placement,
        checkpoint=checkpoint,
        progress=progress,
        on_epoch=on_epoch,
    )


def check_freezing(spec: Spec, model: Manifold) -> None:
    """Refuse to freeze what cannot be, before a directory is made and epochs are spent.

    Args:
        spec: Whether and when to freeze.
        model: The manifold.

    Raises:
        UsageError: If the manifold cannot be frozen; the message gives its reason.
    """
    # The manifold itself refuses, with its own reason.
    if spec.training.freeze_epoch is not None and not model.can_freeze:
        model.freeze()


def _validation(spec: Spec, model: Manifold, splits: Splits) -> Validation | None:
    """A quick look after every epoch: the first validation samples, at some preferences."""
    samples, preferences = spec.training.watch_samples, spec.training.watch_preferences
    if not samples:
        return None
    alphas = None
    if preferences is not None and len(model.preferences()) > preferences:
        alphas = grid(model.num_tasks, preferences)
    return Validation(first_batches(splits.validation, samples, EVALUATION_BATCH), alphas)
