"""The first verb: one loop for every method. ``train_step`` reads like Algorithm 1 of the paper."""

import time
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from lorpman.errors import UsageError, whole_number
from lorpman.front.evaluate import as_input, evaluate
from lorpman.manifold.base import Manifold, check_manifold
from lorpman.manifold.network_parameters import check_values
from lorpman.manifold.own_weights import check_own_weights
from lorpman.manifold.stacked_outputs import select_output
from lorpman.preference import Sampler
from lorpman.rules.base import Network, Rule, Step
from lorpman.task import Task, check_repeatable, check_tasks, task_losses, unpack
from lorpman.training import checkpoint as checkpoints
from lorpman.training.divergence import LastStep, check_epoch, check_losses
from lorpman.training.optimizers import Interval, MakeOptimizer, MakeScheduler
from lorpman.training.options import (
    Checkpoints,
    FlatOptions,
    Placement,
    Validation,
    group_options,
)
from lorpman.training.progress import Progress, progress_bar
from lorpman.training.resumable_batches import capture, restore
from lorpman.training.saving import Saver
from lorpman.training.state import TrainingState
from lorpman.training.stop_signals import stop_requests


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
    """Whether the main weights stood still."""
    seconds: float
    """Spent on it, validation included."""


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
    averaging: float = 0.0,
    validation: Validation | Iterable[Any] | None = None,
    seed: int | None = None,
    placement: Placement | None = None,
    checkpoint: Checkpoints | Path | str | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
    **flat: Unpack[FlatOptions],
) -> list[Epoch]:
    """Train ``model`` in place so that every preference gives a good trade-off.

    Every step draws preferences, runs the same mini-batch through the networks at all of them,
    and lets ``objective`` turn the losses into gradients.

    Args:
        model: The manifold; any of them.
        tasks: One per task of the model, in its order.
        loader: Yields batches ``(x, y)`` with one target per task in ``y``; iterated once per
            epoch.
        epochs: Passes over ``loader``.
        objective: A rule, usually a sum of terms; None for linear scalarisation.
        window: Preferences per step, b in the paper.
        concentration: Of the Dirichlet distribution they are drawn from, where the manifold
            does not have preferences of its own.
        sampler: Draws them instead.
        freeze_epoch: The epoch, counted from 0, from which on the main weights stay still.
        freeze_heads: Whether the heads stop with them.
        optimizer: An instance, or a function that makes one from parameters; None for Adam
            with a rate of 1e-3.
        scheduler: An instance, or a function that makes one from the optimiser.
        scheduler_interval: "epoch" or "step": when the schedule moves.
        averaging: Decay per step of an exponential mean of the weights (0.998, for instance),
            which is what is shown, saved and left in the end; 0 for none.
        validation: Data on which every epoch reports its hypervolume: a loader, or a
            :class:`~lorpman.training.options.Validation`.
        seed: Fixes the preferences; None to draw one from torch's global generator.
        placement: Devices, processes and precision.
        checkpoint: Where to save: a path, or a
            :class:`~lorpman.training.options.Checkpoints`, which can also resume.
        progress: Whether to show it on standard error.
        on_epoch: Called with every :class:`Epoch` by the first process.
        **flat: The fields of placement, checkpoint and validation as keywords: ``fabric``,
            ``own_preferences``, ``compiled``, ``checkpoint_every``, ``resume``,
            ``validation_alphas``.

    Returns:
        One record per epoch that was trained.

    Raises:
        UsageError: If options, tasks, data and model do not fit together.
        TrainingDiverged: If a loss or a weight becomes NaN or infinite; checkpoints are finite.
        TrainingInterrupted: If a signal ended training, after a checkpoint.
    """
    groups = group_options(placement, checkpoint, validation, **flat)
    check_manifold(model)
    check_tasks(tasks, model.num_tasks)
    check_values(model)
    _check_settings(epochs, window, freeze_epoch, averaging)
    if epochs > 1:
        check_repeatable(loader, "the loader")
    # The manifold decides how: one of finitely many networks draws only their preferences.
    draw = sampler if sampler is not None else model.sampler(concentration)
    state = TrainingState(
        model,
        objective,
        optimizer,
        scheduler,
        scheduler_interval,
        groups.placement,
        averaging,
        seed,
    )
    path = None if groups.checkpoints.path is None else Path(groups.checkpoints.path)
    if groups.checkpoints.resume and path is not None and checkpoints.exists(path):
        state.resume(path, freeze_heads, loader)
    plan = _Plan(tasks, loader, draw, window, epochs, freeze_epoch, freeze_heads, groups.validation)
    return _train(state, plan, groups.checkpoints, progress, on_epoch)


@dataclass(frozen=True)
class _Plan:
    """What stays the same from epoch to epoch."""

    tasks: Sequence[Task]
    loader: Iterable[Any]
    draw: Sampler
    window: int
    epochs: int
    freeze_epoch: int | None
    freeze_heads: bool
    validation: Validation | None


def _train(
    state: TrainingState,
    plan: _Plan,
    checkpoints: Checkpoints,
    progress: bool,
    on_epoch: Callable[[Epoch], None] | None,
) -> list[Epoch]:
    """Train the epochs that are left, and save and tell each of them."""
    first = state.fabric.is_global_zero
    length = len(plan.loader) if isinstance(plan.loader, Sized) else None
    history: list[Epoch] = []
    with (
        stop_requests(checkpoints.path is not None) as stop,
        progress_bar(progress and first, plan.epochs, state.epoch, state.steps, length) as bar,
    ):
        saver = Saver(checkpoints, stop)
        while state.epoch < plan.epochs:
            # A resumed epoch has used some seconds already, in the process before.
            began = time.perf_counter() - state.seconds
            state.begin_epoch(plan.epochs, plan.freeze_epoch, plan.freeze_heads)
            _train_epoch(state, plan, bar, saver)
            # Before anything of this epoch is shown, told or saved.
            check_epoch(state, plan.tasks, plan.epochs)
            record = _finish_epoch(state, plan, began)
            history.append(record)
            bar.epoch(record.number, record.losses, record.hypervolume)
            if on_epoch is not None and first:
                on_epoch(record)
            # After on_epoch: a checkpoint says that everything of its epoch was told.
            saver.after_epoch(state, plan.loader)
    # Not before the last checkpoint, which needs the weights that are trained.
    state.finish()
    return history


def _train_epoch(state: TrainingState, plan: _Plan, bar: Progress, saver: Saver) -> None:
    """The rest of one pass over the data; the whole of it unless a resumed run was inside."""
    began = time.perf_counter() - state.seconds
    for batch in state.remaining_batches(plan.loader):
        # Before the first step only, since it takes several passes through the network.
        if state.last is None:
            _check_networks(state, batch)
        losses = train_step(state, batch, plan.tasks, plan.draw, plan.window, plan.epochs)
        state.finish_step(losses)
        state.seconds = time.perf_counter() - began
        bar.step()
        saver.after_step(state, plan.loader)


def train_step(
    state: TrainingState,
    batch: Any,
    tasks: Sequence[Task],
    draw: Sampler,
    window: int,
    epochs: int,
) -> Tensor:
    """One step of Algorithm 1 of the paper on one mini-batch.

    Args:
        state: What is trained, and with what.
        batch: The mini-batch ``(x, y)``.
        tasks: One per task of the model.
        draw: Draws the preferences.
        window: How many.
        epochs: Of the whole training, for rules that change over time.

    Returns:
        The losses ``[b, m]`` before the step.

    Raises:
        TrainingDiverged: If one of them is not finite.
    """
    # Draw b preferences alpha_1, ..., alpha_b from the simplex.
    alphas = draw(state.model.num_tasks, window, state.generator).to(state.fabric.device)

    # The loss f_i(theta(alpha_j)) of every task i at every preference j, on the same mini-batch.
    def losses_at(alphas: Tensor, batch: Any, network: Network | None = None) -> Tensor:
        x, y = unpack(batch)
        outputs = state.placed.forward(x, alphas, network)
        # Rules that look ahead take losses without gradients.
        trained = torch.is_grad_enabled()
        networks = (select_output(outputs, j) for j in range(len(alphas)))
        losses = torch.stack([task_losses(output, y, tasks, trained) for output in networks])
        # Before the backward pass: a NaN in one step's gradient would spoil all weights.
        check_losses(losses, alphas, tasks, state)
        return losses

    # The gradient of sum_ji alpha_ji losses_ji + lambda_p R_p + lambda_o R_o, or of what the
    # rule puts in its place. It asks for the losses itself: some rules look ahead.
    state.placed.optimizer.zero_grad()
    step = Step(
        alphas=alphas,
        model=state.model,
        backward=state.placed.backward,
        losses_at=losses_at,
        batch=batch,
        another_batch=state.another_batch,
        epoch=state.epoch,
        epochs=epochs,
        optimizer=state.optimizer,
        losses_of=state.placed.one_by_one(lambda network, alpha: losses_at(alpha, batch, network)),
    )
    state.placed.gradients(step)
    # Now, while the gradients of all processes are averaged and no weight has moved.
    state.model.after_backward()

    # Step on theta_0, A, B and the heads; on A, B and perhaps heads once theta_0 is frozen.
    state.placed.optimizer.step()
    state.last = LastStep(batch, alphas, step.losses.detach())
    return state.last.losses


def _finish_epoch(state: TrainingState, plan: _Plan, began: float) -> Epoch:
    """Close the epoch, and score the present front where there is validation data."""
    means = state.finish_epoch()
    volume = None
    if plan.validation is not None:
        with state.as_it_will_be():
            volume = _hypervolume(state, plan.tasks, plan.validation)
    return Epoch(
        number=state.epoch,
        losses={task.name: value for task, value in zip(plan.tasks, means, strict=True)},
        hypervolume=volume,
        learning_rate=state.last_rate,
        frozen=state.model.frozen,
        seconds=time.perf_counter() - began,
    )


def _hypervolume(state: TrainingState, tasks: Sequence[Task], validation: Validation) -> float:
    """Of the present front, measured by the first process and told to the others."""
    volume = 0.0
    if state.fabric.is_global_zero:
        front = evaluate(state.model, tasks, validation.loader, validation.alphas)
        volume = float(front.hypervolume())
    return state.fabric.broadcast(volume) if state.fabric.world_size > 1 else volume


def _check_settings(epochs: int, window: int, freeze_epoch: int | None, averaging: float) -> None:
    whole_number("epochs", epochs)
    whole_number("window", window)
    if freeze_epoch is not None:
        whole_number("freeze_epoch", freeze_epoch, least=0)
    if not 0 <= averaging < 1:
        raise UsageError(f"averaging must be at least 0 and below 1, got {averaging}")
    if not torch.is_grad_enabled():
        where = "inference_mode" if torch.is_inference_mode_enabled() else "no_grad"
        raise UsageError(f"training needs gradients, found torch.{where}(); call fit outside of it")


def _check_networks(state: TrainingState, batch: Any) -> None:
    """Try the networks on a first batch, and leave everything as it was."""
    # To try them draws random numbers, which must not change the run.
    before = capture(())
    try:
        check_own_weights(state.model, as_input(unpack(batch)[0], state.model))
    finally:
        restore(before, ())
