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

SHOWN = 8
_CANDIDATES = 200
_PICTURE_SIDE = 96


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
class Samples:
    """Inputs that stand beside one another, and what the balanced network says about them."""

    x: Tensor | list[Tensor]
    """``[k, ...]``; a list where every task has inputs of its own."""
    y: list[Tensor]
    tasks: Sequence[Task]
    shown: list[list[int]]
    """For every card, the tasks whose predictions it lists."""
    balanced: list[list[Prediction]]
    pictures: list[bytes | None]
    """The input on every card as a PNG, where it can be one."""

    def predict(self, network: nn.Module) -> list[list[Prediction]]:
        """For every card, the predictions of ``network``."""
        with torch.no_grad():
            outputs = per_task(network(self.x), self.tasks, "the network's output")
        return _predictions(outputs, self.y, self.shown, isinstance(self.x, list))


def choose(model: Manifold, tasks: Sequence[Task], batch: Batch) -> Samples:
    """Samples of ``batch`` whose predictions depend on the preference first, then others."""
    x, y = _head(batch, _CANDIDATES)
    balance = grid(model.num_tasks, 1)[0]
    corners = torch.eye(model.num_tasks)
    with torch.no_grad():
        middle = per_task(model.solution(balance).eval()(x), tasks, "the network's output")
        moved = [torch.zeros(len(target), dtype=torch.bool) for target in y]
        for corner in corners:
            outputs = per_task(model.solution(corner).eval()(x), tasks, "the network's output")
            for task, (old, new) in enumerate(zip(middle, outputs, strict=True)):
                moved[task] |= _differs(old, new, y[task])
    order = torch.stack([m.long() for m in moved]) if _same_length(y) else None
    if isinstance(x, list):
        x, y, shown = _one_per_task(x, y, moved)
    else:
        assert order is not None
        rows = order.sum(0).argsort(descending=True, stable=True)[:SHOWN].sort().values
        shown = [_most_moved(order[:, row]) for row in rows.tolist()]
        x, y = x[rows], [target[rows] for target in y]
    inputs = [x[own[0]][0] for own in shown] if isinstance(x, list) else list(x)
    bare = Samples(x, y, tasks, shown, [], [picture(one) for one in inputs])
    return replace(bare, balanced=bare.predict(model.solution(balance).eval()))


def _head(batch: Batch, count: int) -> Batch:
    x, y = batch
    part = [one[:count] for one in x] if isinstance(x, list) else x[:count]
    return part, [target[:count] for target in y]


def _same_length(y: list[Tensor]) -> bool:
    return len({len(target) for target in y}) == 1


def _differs(old: Tensor, new: Tensor, target: Tensor) -> Tensor:
    """Which samples are given another class, ``[n]``; none, where outputs are no classes."""
    if not _is_class(old, target):
        return torch.zeros(len(target), dtype=torch.bool)
    return old.argmax(1) != new.argmax(1)


def _is_class(output: Tensor, target: Tensor) -> bool:
    return output.ndim == 2 and target.ndim == 1 and not target.is_floating_point()


def _most_moved(moved: Tensor, limit: int = 4) -> list[int]:
    """The tasks of one sample: all where there are few, else those that move first."""
    order = moved.argsort(descending=True, stable=True)[:limit]
    return sorted(order.tolist())


def _one_per_task(
    x: list[Tensor], y: list[Tensor], moved: list[Tensor]
) -> tuple[list[Tensor], list[Tensor], list[list[int]]]:
    """One sample of each task: the first that moves. Cards for the tasks that move most."""
    first = [int(flags.long().argmax()) for flags in moved]
    counts = torch.tensor([int(flags.sum()) for flags in moved])
    cards = counts.argsort(descending=True, stable=True)[:SHOWN].sort().values.tolist()
    inputs = [part[i : i + 1] for part, i in zip(x, first, strict=True)]
    targets = [target[i : i + 1] for target, i in zip(y, first, strict=True)]
    return inputs, targets, [[task] for task in cards]


def _predictions(
    outputs: list[Tensor], y: list[Tensor], shown: list[list[int]], own_inputs: bool
) -> list[list[Prediction]]:
    cards = []
    for card, tasks in enumerate(shown):
        row = 0 if own_inputs else card
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
    """An input as a PNG: images ``[1 or 3, h, w]``, rows ``[k]`` as a strip; None for a number."""
    from PIL import Image

    values = x.detach().float()
    if values.ndim == 1 and len(values) > 1:
        values = _strip(values)
    if values.ndim != 3 or values.shape[0] not in (1, 3):
        return None
    low, high = values.amin(), values.amax()
    pixels = ((values - low) / (high - low).clamp_min(1e-9) * 255).round().byte()
    array = pixels.permute(1, 2, 0).squeeze(2).contiguous().numpy()
    factor = max(1, _PICTURE_SIDE // max(array.shape[:2]))
    image = Image.fromarray(array)
    image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def _strip(values: Tensor) -> Tensor:
    """A row of a table as a small square of shades, one per column."""
    side = int(len(values) ** 0.5 + 0.999)
    square = values.new_zeros(side * side)
    square[: len(values)] = values.clamp(-3, 3)
    return square.view(1, side, side)
