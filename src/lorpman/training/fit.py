"""The first verb: one loop for every method. It reads like Algorithm 1 of the paper."""

import time
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from lorpman.errors import TrainingDiverged, UsageError
from lorpman.front.evaluate import evaluate
from lorpman.manifold.base import Manifold, select_output
from lorpman.preference import Sampler
from lorpman.rules.base import Rule
from lorpman.task import Task, check_repeatable, check_tasks, task_losses, unpack
from lorpman.training import checkpoint as checkpoints
from lorpman.training.progress import Progress, progress_bar
from lorpman.training.state import Interval, MakeOptimizer, MakeScheduler, Saver, Training
from lorpman.training.stop_signals import stop_requests

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Epoch:
    """What one epoch of training did."""

    number: int
    """Counted from 1."""
    losses: dict[str, float]
    """Mean training loss of every task, over batches and drawn preferences."""
    hypervolume: float | None
    """Of the front on the validation data."""
    learning_rate: float
    """Of its last step."""
    frozen: bool
    seconds: float


def fit(
    model: Manifold,
    tasks: Sequence[Task],
    loader: Iterable[Any],
    *,
    epochs: int,
    objective: Rule | None = None,
    window: int = 4,
    concentration: float = 1.0,
    sampler: Sampler | None = None,
    freeze_epoch: int | None = None,
    freeze_heads: bool = False,
    optimizer: Optimizer | MakeOptimizer | None = None,
    scheduler: LRScheduler | MakeScheduler | None = None,
    scheduler_interval: Interval = "epoch",
    validation: Iterable[Any] | None = None,
    validation_alphas: Tensor | None = None,
    seed: int | None = None,
    fabric: "Fabric | None" = None,
    own_preferences: bool = False,
    compiled: bool = False,
    averaging: float = 0.0,
    progress: bool = True,
    checkpoint: Path | str | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> list[Epoch]:
    """Train ``model`` in place so that every preference gives a good trade-off.

    Every step draws ``window`` preferences (Dirichlet with ``concentration``, unless a
    ``sampler`` is given), runs the same mini-batch through the networks at all of them, and
    lets ``objective`` (default: linear scalarisation) turn the losses into gradients. From
    epoch ``freeze_epoch`` on, counted from 0, the main weights stay still.

    ``optimizer`` and ``scheduler`` are instances, or functions that make one (default: Adam,
    1e-3); schedulers move once per epoch, or with ``scheduler_interval="step"`` after every
    step. With ``validation``, each epoch reports hypervolume, at ``validation_alphas`` or the
    manifold's own preferences.
    ``seed`` fixes the preferences; default: drawn from torch's global generator. ``fabric``
    places the run (devices, precision, processes); with ``own_preferences`` every process draws
    preferences of its own; ``compiled`` runs the networks through torch.compile. With
    ``averaging``, the model shown and left in the end is an exponential mean over the steps, of
    that decay (0.998, for instance). With ``checkpoint``, every epoch is saved there, and every
    ``checkpoint_every`` steps; SIGINT and SIGTERM save and raise TrainingInterrupted; and
    ``resume`` continues from the newest whole checkpoint, bit for bit on the CPU.
    """
    check_tasks(tasks, model.num_tasks)
    if epochs > 1:
        check_repeatable(loader, "the loader")
    _check_settings(epochs, window, freeze_epoch, checkpoint_every)
    if not 0 <= averaging < 1:
        raise UsageError(f"averaging must be at least 0 and below 1, got {averaging}")
    draw = sampler if sampler is not None else model.sampler(concentration)
    run = Training(
        model,
        objective,
        optimizer,
        scheduler,
        seed,
        fabric,
        own_preferences,
        compiled,
        averaging,
        scheduler_interval,
    )
    path = None if checkpoint is None else Path(checkpoint)
    if resume and path is not None and checkpoints.exists(path):
        run.load(path, freeze_heads, loader)
    first, shown = run.fabric.is_global_zero, progress and run.fabric.is_global_zero
    length = len(loader) if isinstance(loader, Sized) else None
    history: list[Epoch] = []
    with (
        stop_requests(path is not None) as stop,
        progress_bar(shown, epochs, run.epoch, run.steps, length) as bar,
    ):
        saver = Saver(path, checkpoint_every, stop)
        while run.epoch < epochs:
            run.begin_epoch(epochs)
            if run.epoch == freeze_epoch and not run.frozen:
                run.freeze(freeze_heads)
            began = time.perf_counter() - run.seconds
            _epoch(run, tasks, loader, draw, window, epochs, bar, saver)
            means = run.finish_epoch()
            volume = None
            if validation is not None:
                with run.shown():
                    volume = _hypervolume(run, tasks, validation, validation_alphas)
            named = {task.name: value for task, value in zip(tasks, means, strict=True)}
            seconds = time.perf_counter() - began
            record = Epoch(run.epoch, named, volume, run.last_rate, model.frozen, seconds)
            history.append(record)
            bar.epoch(record.number, named, volume)
            if on_epoch is not None and first:
                on_epoch(record)
            saver.after_epoch(run, loader)
    run.finish()
    return history


def _check_settings(
    epochs: int, window: int, freeze_epoch: int | None, checkpoint_every: int | None
) -> None:
    if epochs < 1:
        raise UsageError(f"epochs must be at least 1, got {epochs}")
    if window < 1:
        raise UsageError(f"window must be at least 1, got {window}")
    if freeze_epoch is not None and freeze_epoch < 0:
        raise UsageError(f"freeze_epoch must be 0 or more, got {freeze_epoch}")
    if checkpoint_every is not None and checkpoint_every < 1:
        raise UsageError(f"checkpoint_every must be at least 1 step, got {checkpoint_every}")


def _epoch(
    run: Training,
    tasks: Sequence[Task],
    loader: Iterable[Any],
    draw: Sampler,
    window: int,
    epochs: int,
    bar: Progress,
    saver: Saver,
) -> None:
    """The rest of one pass over the data."""
    began = time.perf_counter() - run.seconds
    for batch in run.begin(loader):
        alphas = draw(run.model.num_tasks, window, run.generator)
        losses = _step(run, batch, alphas, tasks, epochs)
        run.losses += losses.mean(0).cpu()
        run.steps += 1
        run.seconds = time.perf_counter() - began
        bar.step()
        saver.after_step(run, loader)


def _step(run: Training, batch: Any, alphas: Tensor, tasks: Sequence[Task], epochs: int) -> Tensor:
    """One step on one batch; the losses ``[b, m]`` before it."""

    def losses_at(alphas: Tensor, batch: Any) -> Tensor:
        x, y = unpack(batch)
        outputs = run.forward(x, alphas)
        rows = [task_losses(select_output(outputs, j), y, tasks) for j in range(len(alphas))]
        losses = torch.stack(rows)
        _check_finite(losses, alphas, tasks, run.epoch, run.steps)
        return losses

    assert run.data is not None
    told = {"batch": batch, "another_batch": run.data.another, "epoch": run.epoch}
    return run.step(losses_at, {"alphas": alphas, "epochs": epochs, **told})


def _hypervolume(
    run: Training, tasks: Sequence[Task], validation: Iterable[Any], alphas: Tensor | None
) -> float:
    """Of the present front, taken by the first process and told to the others."""
    volume = 0.0
    if run.fabric.is_global_zero:
        volume = float(evaluate(run.model, tasks, validation, alphas).hypervolume())
    return run.fabric.broadcast(volume) if run.fabric.world_size > 1 else volume


def _check_finite(
    losses: Tensor, alphas: Tensor, tasks: Sequence[Task], epoch: int, step: int
) -> None:
    if torch.isfinite(losses).all():
        return
    j, i = (~torch.isfinite(losses)).nonzero()[0].tolist()
    preference = ", ".join(f"{a:.3g}" for a in alphas[j].tolist())
    raise TrainingDiverged(
        f"the loss of task '{tasks[i].name}' became {losses[j, i].item()} at epoch {epoch + 1}, "
        f"step {step + 1}, preference ({preference}); check this task's data or lower the "
        "learning rate"
    )
