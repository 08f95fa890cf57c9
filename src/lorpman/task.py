"""A task: how its loss and score are taken, which way is better, and from where volume counts.

Which way is better is asked here and nowhere else: everything that depends on it, from the sign
of a score to the words under an axis, is a part of the task's :class:`Direction`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lorpman._torch import tree_leaves, tree_map_only
from lorpman.errors import UsageError, check_kind, finite_number, shown
from lorpman.metrics import Measure, Score, as_score

_Scores = TypeVar("_Scores", float, Tensor)


@dataclass(frozen=True)
class Direction:
    """Which way a score gets better, as a sign and in the words that readers need.

    >>> LOWER.orient(0.3), LOWER.reaches(0.3, 0.5), HIGHER.reaches(0.3, 0.5)
    (-0.3, True, False)
    """

    sign: float
    """1.0 where more is better, else -1.0."""
    better: str
    """The word for a better score: "bigger" or "smaller"."""
    words: str
    """What stands under a score: "higher is better", or the opposite."""
    axis_words: str
    """The same with an arrow that points along an axis of scores."""
    bound: str
    """The option that bounds such a score: "at_least" or "at_most"."""
    symbol: str
    """How a kept bound is written: "≥" or "≤"."""

    def orient(self, scores: _Scores) -> _Scores:
        """``scores`` turned so that bigger is better.

        Args:
            scores: Numbers or tensors of any shape.
        """
        return self.sign * scores

    def reaches(self, score: float, bound: float) -> bool:
        """Whether ``score`` is at least as good as ``bound``.

        Args:
            score: What was measured.
            bound: What was asked for.
        """
        return self.orient(score) >= self.orient(bound)


HIGHER = Direction(1.0, "bigger", "higher is better", "higher is better →", "at_least", "≥")
LOWER = Direction(-1.0, "smaller", "lower is better", "← lower is better", "at_most", "≤")


def direction_of(maximise: bool) -> Direction:
    """The direction that the flag of a task stands for.

    Args:
        maximise: Whether more is better.
    """
    return HIGHER if maximise else LOWER


def signs(maximise: bool | Sequence[bool]) -> NDArray[np.float64]:
    """The sign that turns each score so that bigger is better.

    Args:
        maximise: One flag for all tasks, or one per task.

    Returns:
        1.0 or -1.0, ``[]`` or ``[m]``.

    >>> signs([True, False])
    array([ 1., -1.])
    """
    return np.where(np.asarray(maximise), HIGHER.sign, LOWER.sign)


class Masked(NamedTuple):
    """A target with a mask: which samples have a label.

    Stands in a sample or a batch where the target alone would: as the target of one task, or
    around those of all tasks, with a mask of the same structure.

    Args:
        target: The target; whatever it is, it does not count where there is no label.
        present: True for each sample that has a label, ``[n]`` in a batch.

    >>> one = Task("stars", lambda output, target: (output - target).abs().mean(), max)
    >>> target = Masked(torch.tensor([4.0, 0.0]), torch.tensor([True, False]))
    >>> one.loss_of(torch.tensor([3.0, 3.0]), target)
    tensor(1.)
    """

    target: Any
    present: Any


@dataclass(frozen=True)
class Task:
    """One task of a multi-task network.

    Args:
        name: What people call it; every task of a network has another name.
        loss: ``loss(output, target)`` gives the scalar that training lowers.
        score: What people read: a function ``(output, target)`` that gives the mean of a batch
            or a value per sample, or a :class:`~lorpman.metrics.Score` for what does not
            average, such as mIoU.
        maximise: Whether a bigger score is better.
        reference: The worst score that hypervolume counts.
        missing: The value of a target that stands for no label, such as ``float("nan")`` or -1.
            A sample without a label counts neither in the loss nor in the score; one whose
            target has several values is left out where all of them are missing. Where no value
            is free to say so, a :class:`Masked` target does.
        classes: What the classes are called, in the order of the output, where it has one value
            per class; pages show these names instead of numbers.
        show: ``show(output)`` says in words what the network means by its output for one sample,
            where neither a class nor the plain numbers say it.

    Raises:
        UsageError: If ``maximise`` is no bool, ``reference`` is not finite, or two classes have
            one name.
    """

    name: str
    loss: Callable[[Tensor, Tensor], Tensor]
    score: Measure | Score
    maximise: bool = True
    reference: float = 0.0
    missing: float | None = None
    classes: Sequence[str] = ()
    show: Callable[[Tensor], str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.maximise, bool):
            raise UsageError(f"maximise must be True or False, got {shown(self.maximise)}")
        finite_number(f"the reference of '{self.name}'", self.reference)
        if isinstance(self.classes, str) or len(set(self.classes)) < len(self.classes):
            raise UsageError(
                f"the classes of '{self.name}' must be a list of different names, "
                f"got {self.classes!r}"
            )

    @property
    def direction(self) -> Direction:
        """Which way this task's score gets better."""
        return direction_of(self.maximise)

    def metric(self) -> Score:
        """The score as sums over batches."""
        return as_score(self.score)

    def labelled(self, output: Any, target: Any) -> tuple[Any, Any, int]:
        """The samples of a batch that have a label, and how many they are.

        Args:
            output: What the network gave for this task; of any structure.
            target: Its target.

        Returns:
            Output and target of those samples, and their number.

        Raises:
            UsageError: If labels may be missing, and the target is no tensor, or if its mask has
                not one entry per sample.
        """
        count = _length(target)
        if isinstance(target, Masked):
            present = self._check_mask(target)
            output, target, count = _chosen(output, target.target, present)
        if self.missing is None:
            return output, target, count
        if not isinstance(target, Tensor):
            raise UsageError(
                f"missing labels of task '{self.name}' need a tensor as its target, found "
                f"{type(target).__name__}"
            )
        # NaN equals nothing, not even itself.
        absent = target.isnan() if math.isnan(self.missing) else target == self.missing
        return _chosen(output, target, ~absent.flatten(1).all(1) if absent.ndim > 1 else ~absent)

    def _check_mask(self, masked: Masked) -> Tensor:
        """The mask as truth values ``[n]``."""
        present, count = masked.present, _length(masked.target)
        if not isinstance(present, Tensor) or present.numel() != count:
            found = list(present.shape) if isinstance(present, Tensor) else type(present).__name__
            raise UsageError(
                f"the mask of task '{self.name}' must have one entry per sample, [{count}], found "
                f"{found}; for parts of a target, give them a value that your loss ignores"
            )
        return present.flatten().bool()

    def loss_of(self, output: Any, target: Any) -> Tensor:
        """The loss over the samples that have a label; zero where none has.

        Args:
            output: What the network gave for this task.
            target: Its target.
        """
        output, target, count = self.labelled(output, target)
        if count == 0:
            # With a graph, so that gradients are zero and not absent.
            return torch.stack([o.sum() for o in tree_leaves(output) if o is not None]).sum() * 0
        return self.loss(output, target)


def check_tasks(tasks: Sequence[Task], num_tasks: int) -> None:
    """Refuse a list of tasks that does not fit a manifold of ``num_tasks`` tasks.

    Args:
        tasks: What the caller gave.
        num_tasks: The number m of tasks of the manifold.

    Raises:
        UsageError: If the number differs, or if two tasks have one name.
    """
    check_kind("tasks", tasks, Sequence, "a list of Tasks")
    for task in tasks:
        check_kind("every task", task, Task, "an lp.Task")
    if len(tasks) != num_tasks:
        raise UsageError(
            f"the model was built for num_tasks={num_tasks}, but {len(tasks)} tasks were given; "
            "give one Task per task"
        )
    names = [task.name for task in tasks]
    if len(set(names)) != len(names):
        raise UsageError(f"task names must differ, got {', '.join(names)}")


def _chosen(output: Any, target: Any, present: Tensor) -> tuple[Any, Any, int]:
    """Those samples of a batch that ``present`` ``[n]`` names, and how many they are."""
    kept = tree_map_only(Tensor, lambda value: value[present], (output, target))
    return kept[0], kept[1], int(present.sum())


def _length(target: Any) -> int:
    """How many samples a target of any structure is of."""
    return next((len(v) for v in tree_leaves(target) if isinstance(v, Tensor) and v.ndim), 1)


def batch_length(batch: Any) -> int:
    """How many samples a batch ``(x, y)`` has; the first target says it.

    Args:
        batch: The batch.

    >>> batch_length((torch.zeros(3, 2), [torch.zeros(3), torch.zeros(3)]))
    3
    """
    _, y = unpack(batch)
    return _length(vars(y) if is_dataclass(y) else y)


def per_task(values: Any, tasks: Sequence[Task], what: str) -> list[Tensor]:
    """Split a network's output, or a batch's targets, into one entry per task.

    Args:
        values: A sequence with one entry per task, a mapping or dataclass with the names of the
            tasks, or a tensor ``[n, m, ...]`` whose column ``i`` belongs to task ``i``; or a
            :class:`Masked` of such targets and masks. A mapping of another class than dict
            without their names, as networks of transformers give it, is for all tasks.
        tasks: The tasks, in the order of the result.
        what: What ``values`` are, for the error.

    Returns:
        The entries, in the order of the tasks.

    Raises:
        UsageError: If ``values`` has no entry for some task, or is something else.
    """
    m = len(tasks)
    if isinstance(values, Masked):
        parts = (per_task(part, tasks, what) for part in values)
        return [cast("Tensor", Masked(*pair)) for pair in zip(*parts, strict=True)]
    if is_dataclass(values) and not isinstance(values, Mapping):
        values = vars(values)
    if isinstance(values, Mapping):
        # An output of transformers has fields of its own, which all tasks may read.
        if type(values) is not dict and not any(task.name in values for task in tasks):
            return [cast("Tensor", values)] * m
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


def task_losses(outputs: Any, targets: Any, tasks: Sequence[Task], trained: bool = False) -> Tensor:
    """The losses ``[m]`` of one forward pass.

    Args:
        outputs: What the network gave, in a form that :func:`per_task` splits.
        targets: The batch's targets, likewise.
        tasks: The m tasks.
        trained: Whether gradients are to be taken of them.

    Raises:
        UsageError: If a loss is no scalar tensor, or has no gradient where it should, or if
            outputs or targets do not fit the tasks.
    """
    pairs = zip(
        tasks,
        per_task(outputs, tasks, "the network's output"),
        per_task(targets, tasks, "the batch's targets"),
        strict=True,
    )
    losses = [task.loss_of(output, target) for task, output, target in pairs]
    for task, loss in zip(tasks, losses, strict=True):
        if not isinstance(loss, Tensor):
            raise UsageError(
                f"the loss of task '{task.name}' must be a tensor, found a "
                f"{type(loss).__name__}; compute it with torch, without .item() or float()"
            )
        if loss.ndim != 0:
            raise UsageError(
                f"the loss of task '{task.name}' must be a scalar, found shape "
                f"{list(loss.shape)}; take its mean"
            )
        if trained and not loss.requires_grad:
            raise UsageError(
                f"the loss of task '{task.name}' has no gradient, so nothing would be learned "
                "from it; compute it from the network's output without detach() or no_grad()"
            )
    return torch.stack(losses)


def unpack(batch: Any) -> tuple[Any, Any]:
    """The input and the targets of a batch.

    Args:
        batch: What a loader gave.

    Raises:
        UsageError: If the batch is no pair.
    """
    if not isinstance(batch, Sequence) or len(batch) != 2:
        given = f"{len(batch)} parts" if isinstance(batch, Sequence) else type(batch).__name__
        raise UsageError(
            f"a batch must be (x, y) with one target per task in y, found {given}; "
            "for separate targets use (x, [y_1, ..., y_m])"
        )
    return batch[0], batch[1]


def check_repeatable(loader: Any, what: str) -> None:
    """Refuse an iterator, which one pass over the data would use up.

    Args:
        loader: What the caller gave as a loader.
        what: What the message calls it.

    Raises:
        UsageError: If ``loader`` is an iterator.
    """
    if isinstance(loader, Iterator):
        raise UsageError(
            f"{what} must be iterable more than once, found a {type(loader).__name__}; pass a "
            "DataLoader or a list of batches"
        )
