"""A model that was trained in a loop of one's own, as the page sees it."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from lorpman._torch import tree_leaves, tree_map
from lorpman.errors import UsageError
from lorpman.explorer.opened_run import OpenedRun, Origin
from lorpman.explorer.shown_input import Show
from lorpman.front.evaluate import evaluate
from lorpman.front.select import is_finite
from lorpman.lab.datasets.splits import Batch, Splits, batches
from lorpman.manifold.base import Manifold
from lorpman.task import Task, check_repeatable, check_tasks, per_task, unpack

_BATCH = 1000


class GivenSamples(Dataset[Batch]):
    """Samples in memory, whatever structure their inputs have.

    Args:
        x: Inputs: tensors ``[n, ...]`` in any structure; a list where every task has its own.
        targets: One tensor ``[n, ...]`` per task.
    """

    def __init__(self, x: Any, targets: Sequence[Tensor]) -> None:
        self.x, self.targets = x, list(targets)
        self.channels_last = False

    def __len__(self) -> int:
        return len(self.targets[0])

    def __getitem__(self, index: int) -> Batch:
        x, targets = self.__getitems__([range(len(self))[index]])
        return tree_map(lambda part: part[0], x), [target[0] for target in targets]

    def __getitems__(self, indices: Sequence[int]) -> Batch:
        chosen = torch.as_tensor(indices)
        return tree_map(lambda part: part[chosen], self.x), [y[chosen] for y in self.targets]


def gather_samples(data: Any, tasks: Sequence[Task]) -> GivenSamples:
    """Hold data in memory, in the form that every page can show.

    Args:
        data: A Dataset of ``(x, y)``, a DataLoader or list of such batches, or one pair
            ``(x, y)`` of tensors.
        tasks: The tasks, of which ``y`` has one target each.

    Raises:
        UsageError: If it is something else, or empty.
    """
    check_repeatable(data, "data")
    if isinstance(data, tuple) and len(data) == 2:
        loader: Any = [data]
    elif isinstance(data, Dataset):
        loader = batches(data, _BATCH)
    else:
        loader = data
    try:
        pairs = [unpack(batch) for batch in loader]
    except TypeError as error:
        raise UsageError(
            f"data must be a Dataset, a DataLoader or a pair (x, y), found "
            f"{type(data).__name__}: {error}"
        ) from None
    if not pairs:
        raise UsageError("data is empty; it needs at least one sample")
    x = tree_map(lambda *parts: torch.cat(parts), *(x for x, _ in pairs))
    targets = [per_task(y, tasks, "the batch's targets") for _, y in pairs]
    joined = [torch.cat(parts) for parts in zip(*targets, strict=True)]
    if any(len(leaf) != len(joined[0]) for leaf in (*tree_leaves(x), *joined)):
        raise UsageError("inputs and targets must have one length; one row of each per sample")
    return GivenSamples(x, joined)


def open_model(
    model: Manifold,
    tasks: Sequence[Task],
    data: Any,
    *,
    name: str = "model",
    show: Show | None = None,
) -> OpenedRun:
    """Look at a manifold that no run directory holds; it is scored now, on all of ``data``.

    Args:
        model: The manifold.
        tasks: Its m tasks.
        data: What it is scored on, best held out from training; see :func:`gather_samples`.
        name: What the page calls it.
        show: How one input is shown; None for the usual way.

    Raises:
        UsageError: If model, tasks and data do not fit together.
    """
    check_tasks(tasks, model.num_tasks)
    samples = gather_samples(data, tasks)
    kind = "continuous"
    if is_finite(model):
        kind = "discrete" if len(model.preferences()) > 1 else "single"
    front = evaluate(model, tasks, batches(samples, _BATCH), label=name)
    method = type(model.innermost).__name__
    return OpenedRun(
        key=name,
        path=None,
        spec=None,
        origin=Origin(name, "", method, f"a {method} that was trained elsewhere", kind, name),
        tasks=list(tasks),
        show=show,
        front=front,
        epochs=[],
        description={"parameters": model.num_parameters()},
        model=model,
        splits=Splits(samples, samples, samples),
        why_not_live="",
    )
