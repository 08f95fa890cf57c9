"""A few held-out inputs, to look at while the preference moves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.explorer.shown_input import Show, ShownInput, shown_input
from lorpman.lab.datasets.given_data import map_tensors
from lorpman.lab.datasets.splits import Batch
from lorpman.manifold.base import Manifold
from lorpman.preference import grid
from lorpman.task import Task, per_task

_MOST_CARDS = 8
_MOST_TASKS_ON_CARD = 4
# Test samples among which those that the preference moves are looked for, when the page starts.
_CANDIDATES = 200


@dataclass(frozen=True)
class Prediction:
    """What a network says about one sample, for one task."""

    task: int
    """The place of the task."""
    text: str
    """The class or the number that it says."""
    right: bool | None
    """None where there is no right or wrong, as for a number."""
    truth: str = ""
    """What would have been right; empty where that is no short text."""

    def flipped(self, other: "Prediction") -> bool:
        """Whether both name a class, and not the same one.

        Args:
            other: What another network predicts for the same input and task.
        """
        return self.right is not None and self.text != other.text


@dataclass(frozen=True, eq=False)
class ShownSamples:
    """Inputs that stand beside one another, and what the balanced network says about them."""

    x: Tensor | list[Tensor]
    """``[k, ...]``; a list where every task has inputs of its own."""
    y: list[Tensor]
    """The targets, one tensor per task."""
    tasks: Sequence[Task]
    """All tasks of the model."""
    shown: list[list[int]]
    """For every card, the tasks whose predictions it lists."""
    balanced: list[list[Prediction]]
    """For every card, what the network with equal weights says."""
    inputs: list[ShownInput]
    """The input on every card, as people see it."""

    def predict(self, network: nn.Module) -> list[list[Prediction]]:
        """For every card, the predictions of ``network``.

        Args:
            network: A plain network, on the device of the samples.

        Returns:
            For every card one prediction per task that is shown on it.
        """
        with torch.no_grad():
            outputs = per_task(network(self.x), self.tasks, "the network's output")
        return _predictions(outputs, self.y, self.shown, self.tasks, isinstance(self.x, list))


def choose_samples(
    model: Manifold, tasks: Sequence[Task], batch: Batch, show: Show | None = None
) -> ShownSamples:
    """Choose what to show: samples whose predictions depend on the preference first, then others.

    Args:
        model: The manifold that is looked at.
        tasks: Its m tasks.
        batch: The inputs and targets to choose from.
        show: How the problem wants its inputs to be shown; None for the usual way.

    Returns:
        The samples, with what the network at equal weights says about them.

    Raises:
        UsageError: If an input cannot be shown as the problem says.
    """
    x, y = first_samples(batch, _CANDIDATES)
    balanced = model.solution(grid(model.num_tasks, 1)[0]).eval()
    moved = _moved_by_preference(model, balanced, tasks, (x, y))
    if isinstance(x, list):
        x, y, shown = _one_per_task(x, y, moved)
        inputs = [_sample(x[card[0]], 0) for card in shown]
    else:
        x, y, shown = _most_moved_samples(x, y, moved)
        inputs = [_sample(x, row) for row in range(len(shown))]
    bare = ShownSamples(x, y, tasks, shown, [], [shown_input(one, show) for one in inputs])
    return replace(bare, balanced=bare.predict(balanced))


def first_samples(batch: Batch, count: int) -> Batch:
    """The first ``count`` samples of a batch.

    Args:
        batch: The batch ``(x, y)``.
        count: How many samples there are at most.
    """
    x, y = batch
    return _cut(x, slice(count)), [target[:count] for target in y]


def _cut(x: Any, rows: Any) -> Any:
    """The samples ``rows`` of inputs in any structure of tensors."""
    return map_tensors(lambda part: part[rows], x)


def _sample(x: Any, row: int) -> Any:
    """One input, without a dimension for the batch."""
    return map_tensors(lambda part: part[row], x)


@torch.no_grad()
def _moved_by_preference(
    model: Manifold, balanced: nn.Module, tasks: Sequence[Task], batch: Batch
) -> list[Tensor]:
    """For every task, which samples some corner of the simplex gives another class, ``[n]``."""
    x, y = batch
    middle = per_task(balanced(x), tasks, "the network's output")
    moved = [torch.zeros(len(target), dtype=torch.bool) for target in y]
    for corner in torch.eye(model.num_tasks):
        outputs = per_task(model.solution(corner).eval()(x), tasks, "the network's output")
        for task, (old, new) in enumerate(zip(middle, outputs, strict=True)):
            moved[task] |= _differs(old, new, y[task])
    return moved


def _most_moved_samples(
    x: Any, y: list[Tensor], moved: list[Tensor]
) -> tuple[Any, list[Tensor], list[list[int]]]:
    """The samples that move for most tasks, one on each card, with the tasks to list there."""
    table = torch.stack([flags.long() for flags in moved])
    rows = table.sum(0).argsort(descending=True, stable=True)[:_MOST_CARDS].sort().values
    shown = [_tasks_on_card(table[:, row]) for row in rows.tolist()]
    return _cut(x, rows), [target[rows] for target in y], shown


def _differs(old: Tensor, new: Tensor, target: Tensor) -> Tensor:
    """Which samples are given another class, ``[n]``; none, where outputs are no classes."""
    if not _is_class(old, target):
        return torch.zeros(len(target), dtype=torch.bool)
    return old.argmax(1) != new.argmax(1)


def _is_class(output: Tensor, target: Tensor) -> bool:
    return output.ndim == 2 and target.ndim == 1 and not target.is_floating_point()


def _tasks_on_card(moved: Tensor) -> list[int]:
    """The tasks of one sample: all where there are few, else those that move first."""
    order = moved.argsort(descending=True, stable=True)[:_MOST_TASKS_ON_CARD]
    return sorted(order.tolist())


def _one_per_task(
    x: list[Tensor], y: list[Tensor], moved: list[Tensor]
) -> tuple[list[Tensor], list[Tensor], list[list[int]]]:
    """Of every task, the first sample that moves; cards for the tasks that move most.

    The network still needs an input per task, so all of them stay.
    """
    # Of a task that nothing moves it is the first sample.
    first = [int(flags.long().argmax()) for flags in moved]
    counts = torch.tensor([int(flags.sum()) for flags in moved])
    cards = counts.argsort(descending=True, stable=True)[:_MOST_CARDS].sort().values.tolist()
    inputs = [part[i : i + 1] for part, i in zip(x, first, strict=True)]
    targets = [target[i : i + 1] for target, i in zip(y, first, strict=True)]
    return inputs, targets, [[task] for task in cards]


def _predictions(
    outputs: list[Tensor],
    y: list[Tensor],
    shown: list[list[int]],
    tasks: Sequence[Task],
    input_per_task: bool,
) -> list[list[Prediction]]:
    cards = []
    for card, listed in enumerate(shown):
        row = 0 if input_per_task else card
        cards.append([_prediction(i, tasks[i], outputs[i][row], y[i][row]) for i in listed])
    return cards


def _prediction(place: int, task: Task, output: Tensor, target: Tensor) -> Prediction:
    """What a network's output for one sample says about the task at ``place``."""
    if output.ndim == 1 and target.ndim == 0 and not target.is_floating_point():
        label, truth = int(output.argmax()), int(target)
        text = task.show(output) if task.show is not None else class_name(task, label)
        return Prediction(place, text, label == truth, class_name(task, truth))
    if task.show is not None:
        return Prediction(place, task.show(output), None)
    if output.numel() <= 4:
        text = ", ".join(f"{v:.4g}" for v in output.flatten().tolist())
        truth_text = f"{float(target):.4g}" if target.numel() == 1 else ""
        return Prediction(place, text, None, truth_text)
    return Prediction(place, f"{float(output.mean()):.4g} on average", None)


def class_name(task: Task, label: int) -> str:
    """What a task calls a class; its number, where it has no name.

    Args:
        task: The task.
        label: The number of the class.
    """
    # Heads may be wider than the classes that there are.
    return str(task.classes[label]) if 0 <= label < len(task.classes) else str(label)
