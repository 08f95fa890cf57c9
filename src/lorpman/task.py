"""A task: how its loss and score are taken, which way is better, and from where volume counts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.metrics import Measure, Score, as_score


@dataclass(frozen=True)
class Task:
    """One task of a multi-task network.

    ``loss(output, target)`` gives the scalar that training lowers; ``score`` what people read,
    a function ``(output, target)`` giving the mean of a batch or a value per sample, or a
    :class:`~lorpman.metrics.Score` for what does not average, such as mIoU. ``maximise`` says
    whether a bigger score is better, ``reference`` the worst score that hypervolume counts.
    """

    name: str
    loss: Callable[[Tensor, Tensor], Tensor]
    score: Measure | Score
    maximise: bool = True
    reference: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.maximise, bool):
            raise UsageError(f"maximise must be True or False, got {self.maximise!r}")
        if not math.isfinite(self.reference):
            raise UsageError(f"the reference of '{self.name}' must be finite, got {self.reference}")

    def metric(self) -> Score:
        """The score as sums over batches."""
        return as_score(self.score)


def check_tasks(tasks: Sequence[Task], num_tasks: int) -> None:
    """Refuse a list of tasks that does not fit a manifold of ``num_tasks`` tasks."""
    if len(tasks) != num_tasks:
        raise UsageError(
            f"the model was built for num_tasks={num_tasks}, but {len(tasks)} tasks were given; "
            "give one Task per task"
        )
    names = [task.name for task in tasks]
    if len(set(names)) != len(names):
        raise UsageError(f"task names must differ, got {', '.join(names)}")


def per_task(values: Any, tasks: Sequence[Task], what: str) -> list[Tensor]:
    """Split a network's output, or a batch's targets, into one entry per task.

    A sequence with one entry per task, a mapping from task names, or a tensor ``[n, m, ...]``
    whose column ``i`` belongs to task ``i``.
    """
    m = len(tasks)
    if isinstance(values, Mapping):
        missing = [task.name for task in tasks if task.name not in values]
        if missing:
            raise UsageError(
                f"{what} must have an entry for every task; missing {', '.join(missing)}, "
                f"found {', '.join(map(str, values))}"
            )
        return [values[task.name] for task in tasks]
    if isinstance(values, Tensor):
        if values.ndim < 2 or values.shape[1] != m:
            raise UsageError(
                f"{what} must hold one entry per task ({m}): a list of {m}, or a tensor "
                f"[n, {m}, ...]; found a tensor {list(values.shape)}"
            )
        return list(torch.unbind(values, 1))
    if isinstance(values, Sequence):
        if len(values) != m:
            raise UsageError(
                f"{what} must hold one entry per task ({m}), found {len(values)}; "
                f"tasks: {', '.join(task.name for task in tasks)}"
            )
        return list(values)
    raise UsageError(f"{what} must be a list, a mapping or a tensor, found {type(values).__name__}")


def task_losses(outputs: Any, targets: Any, tasks: Sequence[Task]) -> Tensor:
    """The losses ``[m]`` of one forward pass."""
    pairs = zip(
        tasks,
        per_task(outputs, tasks, "the network's output"),
        per_task(targets, tasks, "the batch's targets"),
        strict=True,
    )
    losses = [task.loss(output, target) for task, output, target in pairs]
    for task, loss in zip(tasks, losses, strict=True):
        if loss.ndim != 0:
            raise UsageError(
                f"the loss of task '{task.name}' must be a scalar, found shape "
                f"{list(loss.shape)}; take its mean"
            )
    return torch.stack(losses)


def unpack(batch: Any) -> tuple[Any, Any]:
    """The input and the targets of a batch."""
    if not isinstance(batch, Sequence) or len(batch) != 2:
        found = f"{len(batch)} parts" if isinstance(batch, Sequence) else type(batch).__name__
        raise UsageError(
            f"a batch must be (x, y) with one target per task in y, found {found}; "
            "for separate targets use (x, [y_1, ..., y_m])"
        )
    return batch[0], batch[1]


def check_repeatable(loader: Any, what: str) -> None:
    """Refuse an iterator that one pass uses up."""
    if isinstance(loader, Iterator):
        raise UsageError(
            f"{what} must be iterable more than once, found a {type(loader).__name__}; pass a "
            "DataLoader or a list of batches"
        )
