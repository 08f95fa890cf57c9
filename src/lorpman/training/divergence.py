"""Training that has left the finite numbers: found before anything is told, saved or returned."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lorpman.errors import TrainingDiverged
from lorpman.front.finiteness import at_preference, describe_bad, describe_bad_weight
from lorpman.manifold.stacked_outputs import select_output
from lorpman.task import Task, task_losses, unpack

if TYPE_CHECKING:
    from lorpman.training.state import TrainingState


@dataclass(frozen=True)
class LastStep:
    """The last step that was taken, kept so that an error can say where it happened."""

    batch: Any
    """What it was taken on."""
    alphas: Tensor
    """Its preferences, ``[b, m]``."""
    losses: Tensor
    """Its losses before it was taken, ``[b, m]``."""


def check_losses(
    losses: Tensor, alphas: Tensor, tasks: Sequence[Task], state: "TrainingState"
) -> None:
    """Stop at the first loss that is NaN or infinite, and say which it is.

    Args:
        losses: Of the present step, ``[b, m]``.
        alphas: The preferences they belong to, ``[b, m]``.
        tasks: The m tasks.
        state: How far training has come.

    Raises:
        TrainingDiverged: If there is one; the message names task, epoch, step and preference.
    """
    if not torch.isfinite(losses).all():
        j, i = (~torch.isfinite(losses)).nonzero()[0].tolist()
        raise TrainingDiverged(
            f"the loss of task '{tasks[i].name}' became {losses[j, i].item()} at epoch "
            f"{state.epoch + 1}, step {state.steps + 1}, {_preference(alphas[j])}; check this "
            "task's data or lower the learning rate"
        )


def check_epoch(state: "TrainingState", tasks: Sequence[Task], epochs: int) -> None:
    """Stop after an epoch whose last step has left something that is not finite.

    A loss is looked at before its step, so that of the last step nobody else would see what it
    did. The weights are read after every epoch, which costs a part of a step; the losses are
    taken once more at the very end.

    Args:
        state: All steps of the epoch are done, and it is not closed yet.
        tasks: The m tasks.
        epochs: Of the whole training.

    Raises:
        TrainingDiverged: If there is something; the message names what and where.
    """
    bad = describe_bad_weight(state.model) or describe_bad_weight(state.rule)
    if bad is not None:
        when = f"after epoch {state.epoch + 1}, step {state.steps}"
        raise TrainingDiverged(
            f"{bad} {when}{_largest_loss(state, tasks)}; "
            "check this task's data and the gradient of its loss, or lower the learning rate"
        )
    # In other epochs the next step computes the losses anyway.
    if state.last is not None and state.epoch + 1 == epochs:
        _check_result(state, state.last, tasks)


def check_checkpoint(content: Mapping[str, Any]) -> None:
    """Refuse to save what is not finite: the checkpoint before stays the last one.

    Args:
        content: What is to be saved; see ``TrainingState.as_checkpoint``.

    Raises:
        TrainingDiverged: If anything is not finite; the message names it.
    """
    weights = {f"parameter '{name}'": v for name, v in content.get("model", {}).items()}
    # Weights may hold minus infinity, as masks do; a rule may begin a minimum at infinity.
    others = {key: content.get(key) for key in ("averaging", "rule", "optimizer")}
    bad = describe_bad(weights, masked=True) or _first_nan(others)
    if bad is not None:
        raise TrainingDiverged(
            f"{bad}, and so nothing was saved; lower the learning rate, or go on from the last "
            "checkpoint with other settings"
        )


def _largest_loss(state: "TrainingState", tasks: Sequence[Task]) -> str:
    """Words for where the last step came from; none if it was taken before a resumption."""
    if state.last is None:
        return ""
    losses = state.last.losses
    j, i = divmod(int(losses.argmax()), losses.shape[1])
    return (
        f", whose largest loss was {losses[j, i].item():.3g} of task '{tasks[i].name}' at "
        f"{_preference(state.last.alphas[j])}"
    )


def _check_result(state: "TrainingState", last: LastStep, tasks: Sequence[Task]) -> None:
    """Stop if the last step has left finite weights whose losses are not."""
    x, y = unpack(last.batch)
    # Eagerly: without gradients everything would be compiled once more.
    with torch.no_grad(), _unchanged(state), torch.compiler.set_stance("force_eager"):
        outputs = state.placed.forward(x, last.alphas)
    for j, alpha in enumerate(last.alphas):
        losses = task_losses(select_output(outputs, j), y, tasks)
        for task, loss in zip(tasks, losses.tolist(), strict=True):
            if not math.isfinite(loss):
                raise TrainingDiverged(
                    f"the loss of task '{task.name}' is {loss} after the last step, at "
                    f"{_preference(alpha)}; lower the learning rate"
                )


@contextmanager
def _unchanged(state: "TrainingState") -> Iterator[None]:
    """The model as it is to be used; its statistics and random numbers are put back."""
    with state.as_it_will_be(), torch.random.fork_rng():
        before = [(buffer, buffer.clone()) for buffer in state.model.buffers()]
        yield
        for buffer, value in before:
            buffer.copy_(value)


def _first_nan(value: Any, name: str = "") -> str | None:
    """The first tensor inside of dictionaries and lists that holds NaN, in words."""
    if isinstance(value, Tensor):
        floats = value.is_floating_point() or value.is_complex()
        return f"'{name}' holds nan" if floats and value.isnan().any() else None
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    parts = value.items() if isinstance(value, Mapping) else ()
    found = (_first_nan(part, f"{name}.{key}" if name else str(key)) for key, part in parts)
    return next((bad for bad in found if bad is not None), None)


def _preference(alpha: Tensor) -> str:
    return at_preference(alpha).removeprefix("at ")
