"""A few held-out inputs, to look at while the preference moves."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from lorpman.lab.datasets.splits import Batch
from lorpman.manifold.base import Manifold
from lorpman.preference import grid
from lorpman.task import Task, per_task

_MOST_CARDS = 8
_MOST_TASKS_ON_CARD = 4
# Test samples among which those that the preference moves are looked for, when the page starts.
_CANDIDATES = 200
_PICTURE_SIDE = 96  # pixels; smaller inputs are enlarged


@dataclass(frozen=True)
class Prediction:
    """What a network says about one sample, for one task."""

    task: int
    text: str
    right: bool | None
    """None where there is no right or wrong, as for a number."""

    def flipped(self, other: "Prediction") -> bool:
        """Whether both name a class, and not the same one."""
        return self.right is not None and self.text != other.text


@dataclass(frozen=True, eq=False)
class ShownSamples:
    """Inputs that stand beside one another, and what the balanced network says about them."""

    x: Tensor | list[Tensor]
    """``[k, ...]``; a list where every task has inputs of its own."""
    y: list[Tensor]
    """The targets, one tensor per task."""
    tasks: Sequence[Task]
    shown: list[list[int]]
    """For every card, the tasks whose predictions it lists."""
    balanced: list[list[Prediction]]
    """For every card, what the network with equal weights says."""
    pictures: list[bytes | None]
    """The input on every card as a PNG, where it can be one."""

    def predict(self, network: nn.Module) -> list[list[Prediction]]:
        """For every card, the predictions of ``network``."""
        with torch.no_grad():
            outputs = per_task(network(self.x), self.tasks, "the network's output")
        return _predictions(outputs, self.y, self.shown, isinstance(self.x, list))


def choose_samples(model: Manifold, tasks: Sequence[Task], batch: Batch) -> ShownSamples:
    """Choose what to show: samples whose predictions depend on the preference first, then others.

    Args:
        model: The manifold that is looked at.
        tasks: Its m tasks.
        batch: The inputs and targets to choose from.
    """
    x, y = first_samples(batch, _CANDIDATES)
    balanced = model.solution(grid(model.num_tasks, 1)[0]).eval()
    moved = _moved_by_preference(model, balanced, tasks, (x, y))
    if isinstance(x, list):
        x, y, shown = _one_per_task(x, y, moved)
        inputs = [x[card[0]][0] for card in shown]
    else:
        x, y, shown = _most_moved_samples(x, y, moved)
        inputs = list(x)
    bare = ShownSamples(x, y, tasks, shown, [], [picture(one) for one in inputs])
    return replace(bare, balanced=bare.predict(balanced))


def first_samples(batch: Batch, count: int) -> Batch:
    """The first ``count`` samples of a batch."""
    x, y = batch
    part = [one[:count] for one in x] if isinstance(x, list) else x[:count]
    return part, [target[:count] for target in y]


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
    x: Tensor, y: list[Tensor], moved: list[Tensor]
) -> tuple[Tensor, list[Tensor], list[list[int]]]:
    """The samples that move for most tasks, one on each card, with the tasks to list there."""
    table = torch.stack([flags.long() for flags in moved])
    rows = table.sum(0).argsort(descending=True, stable=True)[:_MOST_CARDS].sort().values
    shown = [_tasks_on_card(table[:, row]) for row in rows.tolist()]
    return x[rows], [target[rows] for target in y], shown


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
    first = [int(flags.long().argmax()) for flags in moved]
    counts = torch.tensor([int(flags.sum()) for flags in moved])
    cards = counts.argsort(descending=True, stable=True)[:_MOST_CARDS].sort().values.tolist()
    inputs = [part[i : i + 1] for part, i in zip(x, first, strict=True)]
    targets = [target[i : i + 1] for target, i in zip(y, first, strict=True)]
    return inputs, targets, [[task] for task in cards]


def _predictions(
    outputs: list[Tensor], y: list[Tensor], shown: list[list[int]], input_per_task: bool
) -> list[list[Prediction]]:
    cards = []
    for card, tasks in enumerate(shown):
        row = 0 if input_per_task else card
        cards.append([_prediction(task, outputs[task][row], y[task][row]) for task in tasks])
    return cards


def _prediction(task: int, output: Tensor, target: Tensor) -> Prediction:
    if output.ndim == 1 and target.ndim == 0 and not target.is_floating_point():
        label = int(output.argmax())
        return Prediction(task, str(label), label == int(target))
    if output.numel() <= 4:
        return Prediction(task, ", ".join(f"{v:.4g}" for v in output.flatten().tolist()), None)
    return Prediction(task, f"{float(output.mean()):.4g} on average", None)


def picture(x: Tensor) -> bytes | None:
    """An input as a PNG.

    Args:
        x: An image ``[1 or 3, h, w]``, or a row of a table ``[k]``.

    Returns:
        The file's content; None for anything else, such as a single number.
    """
    from PIL import Image

    values = x.detach().float()
    if values.ndim == 1 and len(values) > 1:
        values = _square_of_shades(values)
    if values.ndim != 3 or values.shape[0] not in (1, 3):
        return None
    # Normalised images hold any numbers: the darkest becomes black, the brightest white.
    low, high = values.amin(), values.amax()
    # An image of one colour has no range; it becomes black.
    pixels = ((values - low) / (high - low).clamp_min(1e-9) * 255).round().byte()
    array = pixels.permute(1, 2, 0).squeeze(2).contiguous().numpy()
    factor = max(1, _PICTURE_SIDE // max(array.shape[:2]))
    image = Image.fromarray(array)
    image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def _square_of_shades(values: Tensor) -> Tensor:
    """A row of a table as a small square of shades, one per column."""
    side = int(len(values) ** 0.5 + 0.999)
    square = values.new_zeros(side * side)
    # Columns are standardised; beyond three deviations, one would hide all others.
    square[: len(values)] = values.clamp(-3, 3)
    return square.view(1, side, side)
