"""A few held-out inputs, to look at while the preference moves."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.explorer.shown_input import Show, ShownInput, shown_input
from lorpman.lab.datasets.given_data import has_only_columns, map_columns, map_tensors
from lorpman.lab.datasets.splits import Batch
from lorpman.manifold.base import Manifold
from lorpman.manifold.network_call import call_network
from lorpman.preference import grid
from lorpman.task import Masked, Task, batch_length, per_task

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
    """The targets, one per task."""
    tasks: Sequence[Task]
    """All tasks of the model."""
    shown: list[list[int]]
    """For every card, the tasks whose predictions it lists."""
    rows: list[int]
    """For every card, its sample among ``x`` and ``y``."""
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
            outputs = per_task(call_network(network, self.x), self.tasks, "the network's output")
        cards = zip(self.rows, self.shown, strict=True)
        return [
            [
                _prediction(i, self.tasks[i], outputs[i][row], _sample(self.y[i], row))
                for i in listed
            ]
            for row, listed in cards
        ]


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
    if _input_per_task(x, len(tasks)):
        x, y, shown = _one_per_task(x, y, moved)
        rows = [0] * len(shown)
        inputs = [_sample(x[card[0]], 0) for card in shown]
    else:
        chosen, shown = _most_moved_samples(moved)
        rows = chosen.tolist()
        if has_only_columns(x):
            x, y = _cut(x, chosen), [_cut(target, chosen) for target in y]
            rows = list(range(len(shown)))
        inputs = [_sample(x, row) for row in rows]
    looks = [shown_input(one, show) for one in inputs]
    bare = ShownSamples(x, y, tasks, shown, rows, [], looks)
    return replace(bare, balanced=bare.predict(balanced))


def first_samples(batch: Batch, count: int) -> Batch:
    """The first ``count`` samples of a batch; all, where a batch cannot be cut.

    Args:
        batch: The batch ``(x, y)``.
        count: How many samples there are at most.
    """
    x, y = batch
    if not has_only_columns(x):
        return batch
    return _cut(x, slice(count)), [_cut(target, slice(count)) for target in y]


def _cut(x: Any, rows: slice | Tensor) -> Any:
    """The samples ``rows`` of inputs or targets in any structure of tensors and texts."""

    def cut(part: Any) -> Any:
        if isinstance(part, list) and isinstance(rows, Tensor):
            return [part[row] for row in rows.tolist()]
        return part[rows]

    return map_columns(cut, x)


def _sample(x: Any, row: int) -> Any:
    """One input, without a dimension for the batch."""
    # As joined graphs give one of theirs.
    if not has_only_columns(x) and hasattr(x, "__getitem__"):
        return x[row]
    return map_columns(lambda part: part[row], x)


def _input_per_task(x: Any, num_tasks: int) -> bool:
    """Whether every task has inputs of its own; another list, as of texts, is for all of them."""
    tensors = isinstance(x, list) and all(isinstance(part, Tensor) for part in x)
    return tensors and len(x) == num_tasks


@torch.no_grad()
def _moved_by_preference(
    model: Manifold, balanced: nn.Module, tasks: Sequence[Task], batch: Batch
) -> list[Tensor]:
    """For every task, which samples some corner of the simplex gives another class, ``[n]``."""
    x, y = batch
    middle = per_task(call_network(balanced, x), tasks, "the network's output")
    moved = [torch.zeros(batch_length(batch), dtype=torch.bool) for _ in y]
    for corner in torch.eye(model.num_tasks):
        network = model.solution(corner).eval()
        outputs = per_task(call_network(network, x), tasks, "the network's output")
        for task, (old, new) in enumerate(zip(middle, outputs, strict=True)):
            moved[task] |= _differs(old, new, y[task])
    return moved


def _most_moved_samples(moved: list[Tensor]) -> tuple[Tensor, list[list[int]]]:
    """The samples that move for most tasks, one for each card, with the tasks to list there."""
    table = torch.stack([flags.long() for flags in moved])
    rows = table.sum(0).argsort(descending=True, stable=True)[:_MOST_CARDS].sort().values
    return rows, [_tasks_on_card(table[:, row]) for row in rows.tolist()]


def _differs(old: Tensor, new: Tensor, target: Any) -> Tensor | bool:
    """Which samples are given another class, ``[n]``; none, where outputs are no classes."""
    if not _is_class(old, target.target if isinstance(target, Masked) else target):
        return False
    return old.argmax(1) != new.argmax(1)


def _is_class(output: Tensor, target: Tensor) -> bool:
    return output.ndim == 2 and target.ndim == 1 and not target.is_floating_point()


def _tasks_on_card(moved: Tensor) -> list[int]:
    """The tasks of one sample: all where there are few, else those that move first."""
    order = moved.argsort(descending=True, stable=True)[:_MOST_TASKS_ON_CARD]
    return sorted(order.tolist())


def _one_per_task(
    x: Any, y: list[Tensor], moved: list[Tensor]
) -> tuple[list[Tensor], list[Tensor], list[list[int]]]:
    """Of every task, the first sample that moves; cards for the tasks that move most.

    The network still needs an input per task, so all of them stay.
    """
    # Of a task that nothing moves it is the first sample.
    first = [int(flags.long().argmax()) for flags in moved]
    counts = torch.tensor([int(flags.sum()) for flags in moved])
    cards = counts.argsort(descending=True, stable=True)[:_MOST_CARDS].sort().values.tolist()
    inputs = [part[i : i + 1] for part, i in zip(x, first, strict=True)]
    targets = [_cut(target, slice(i, i + 1)) for target, i in zip(y, first, strict=True)]
    return inputs, targets, [[task] for task in cards]


def _prediction(place: int, task: Task, output: Tensor, target: Any) -> Prediction:
    """What a network's output for one sample says about the task at ``place``."""
    one = map_tensors(lambda value: value[None], target)
    labelled = task.labelled(output[None], one)[2] > 0
    if isinstance(target, Masked):
        target = target.target
    if output.ndim == 1 and target.ndim == 0 and not target.is_floating_point():
        label, truth = int(output.argmax()), int(target)
        text = task.show(output) if task.show is not None else class_name(task, label)
        if not labelled:
            return Prediction(place, text, None)
        return Prediction(place, text, label == truth, class_name(task, truth))
    if task.show is not None:
        return Prediction(place, task.show(output), None)
    if output.numel() <= 4:
        text = ", ".join(f"{v:.4g}" for v in output.flatten().tolist())
        truth_text = f"{float(target):.4g}" if labelled and target.numel() == 1 else ""
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
