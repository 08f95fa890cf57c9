"""Splits of tensors, and how they become batches: what every dataset of this folder returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from lorpman.errors import UsageError
from lorpman.lab.datasets.given_data import OfLoader, as_dataset, collate
from lorpman.task import batch_length

Batch = tuple[Tensor | list[Tensor], list[Tensor]]
"""Inputs (a list where every task has its own), and one target per task."""
Transform = Callable[[Tensor, list[Tensor]], Batch]
"""Applied to whole batches: inputs and targets, as they are stored, to those of a batch."""


class Arrays(Dataset[Batch]):
    """Samples held as tensors: ``x`` ``[n, ...]`` and one target ``[n, ...]`` per task.

    ``__getitems__`` cuts a whole batch with one indexing operation per tensor, so that an
    ordinary ``DataLoader`` (and whatever wraps it) pays no cost per sample. ``gives_batches`` says
    so: by torch's own convention ``__getitems__`` gives a list of samples.

    Args:
        x: Inputs, of any type; may be memory-mapped.
        targets: One tensor per task.
        rows: The samples that belong to this split, ``[k]``; all if not given. Several splits
            can so share one large tensor.
        transform: Applied to each batch, for instance to turn bytes into floats.
        channels_last: How :func:`batches` lays images out.

    Raises:
        ValueError: If the inputs and the targets have different lengths.
    """

    gives_batches = True

    def __init__(
        self,
        x: Tensor,
        targets: Sequence[Tensor],
        rows: Tensor | None = None,
        transform: Transform | None = None,
        channels_last: bool = True,
    ) -> None:
        lengths = {len(x), *(len(y) for y in targets)}
        if len(lengths) != 1:
            raise ValueError(f"x and targets must have one length, got {sorted(lengths)}")
        self.x = x
        self.targets = list(targets)
        self.rows = rows
        self.transform = transform
        self.channels_last = channels_last

    def __len__(self) -> int:
        return len(self.x) if self.rows is None else len(self.rows)

    def __getitem__(self, index: int) -> Batch:
        # range() turns negative indices into positive ones and refuses those out of bounds.
        x, targets = self.__getitems__([range(len(self))[index]])
        one = [part[0] for part in x] if isinstance(x, list) else x[0]
        return one, [y[0] for y in targets]

    def __getitems__(self, indices: Sequence[int] | Tensor) -> Batch:
        chosen = torch.as_tensor(indices)
        if self.rows is not None:
            chosen = self.rows[chosen]
        x = self.x.index_select(0, chosen)
        targets = [y.index_select(0, chosen) for y in self.targets]
        return (x, targets) if self.transform is None else self.transform(x, targets)


class TaskArrays(Dataset[Batch]):
    """Samples of which each belongs to one task: a batch has ``k`` inputs for every task.

    Index ``j`` stands for sample ``rows[i, j]`` of each task ``i``.

    Args:
        x: The inputs of all tasks, ``[n, ...]``.
        target: Their targets, ``[n]``.
        rows: The samples of each task, ``[m, length]``.
        transform: Applied to all inputs of a batch at once, ``[m * k, ...]``.
        channels_last: How :func:`batches` lays images out.
    """

    gives_batches = True

    def __init__(
        self,
        x: Tensor,
        target: Tensor,
        rows: Tensor,
        transform: Transform | None = None,
        channels_last: bool = True,
    ) -> None:
        self.x = x
        self.target = target
        self.rows = rows
        self.transform = transform
        self.channels_last = channels_last

    def __len__(self) -> int:
        return self.rows.shape[1]

    def __getitem__(self, index: int) -> Batch:
        x, targets = self.__getitems__([range(len(self))[index]])
        return [part[0] for part in x], [y[0] for y in targets]

    def __getitems__(self, indices: Sequence[int] | Tensor) -> Batch:
        # [m, k]: the same places in the list of every task.
        chosen = self.rows[:, torch.as_tensor(indices)]
        x = self.x.index_select(0, chosen.flatten())
        targets = list(self.target[chosen])
        if self.transform is not None:
            x, targets = _one_tensor(self.transform(x, targets))
        return list(x.unflatten(0, chosen.shape)), targets


def _one_tensor(batch: Batch) -> tuple[Tensor, list[Tensor]]:
    x, targets = batch
    if not isinstance(x, Tensor):
        raise TypeError("the transform of TaskArrays must return one tensor of inputs")
    return x, targets


@dataclass(frozen=True)
class Splits:
    """Training, validation and test data of one problem.

    Each of them is a torch Dataset, a DataLoader (whose batches are kept, unless a run sets
    ``batch_size``), a list of samples, or a pair ``(x, y)`` of tensors or structures of them. A
    sample is ``(x, y)`` with one target per task in ``y``.

    Args:
        train: What is learned from.
        validation: What settings are chosen on.
        test: What is reported.
        note: How these splits differ from the official ones, if they do: one sentence that can
            stand beside every number that comes from them.

    Raises:
        UsageError: If one of the splits is empty, or is no data, or validation or test is a loader
            that does not read every sample once.
    """

    train: Any
    validation: Any
    test: Any
    note: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        for name in ("train", "validation", "test"):
            try:
                dataset = as_dataset(getattr(self, name))
            except UsageError as error:
                raise UsageError(f"the {name} split: {error}") from None
            object.__setattr__(self, name, dataset)
            if len(dataset) == 0:  # type: ignore[arg-type]
                raise UsageError(f"the {name} split is empty; it needs at least one sample")
            if name != "train" and isinstance(dataset, OfLoader) and not dataset.reads_all:
                raise UsageError(
                    f"the {name} split: a score needs every sample once, and the loader's sampler "
                    "decides otherwise; give the dataset"
                )


def random_partition(
    n: int, fractions: Sequence[float], generator: torch.Generator
) -> list[Tensor]:
    """A random partition of ``0..n-1``.

    Args:
        n: How many there are.
        fractions: Of the parts; the last part takes what rounding leaves over.
        generator: Draws the partition.

    Returns:
        The parts, ``[n_i]`` each; sorted, so that reading them in order reads memory in order.

    >>> generator = torch.Generator().manual_seed(0)
    >>> [len(part) for part in random_partition(10, (0.7, 0.1, 0.2), generator)]
    [7, 1, 2]
    """
    order = torch.randperm(n, generator=generator)
    # 0.29 * 100 is a little less than 29 in floats.
    sizes = [int(n * f + 1e-9) for f in fractions[:-1]]
    parts = order.split([*sizes, n - sum(sizes)])
    return [part.sort().values for part in parts]


def bytes_to_unit(x: Tensor, targets: list[Tensor]) -> Batch:
    """A transform: images of bytes ``[n, c, h, w]`` to floats in 0..1.

    Args:
        x: The images.
        targets: One tensor per task, passed on as they are.
    """
    return x.to(torch.float32) / 255, targets


def _channels_last(batch: Any) -> Batch:
    """The same batch with the channels of each pixel side by side in memory.

    Convolutions and pooling then mostly cost a fifth to a third less on the CPU. With one channel
    both orders are the same, and only the strides tell the operators which way to go.
    """
    x, targets = batch
    if isinstance(x, list):
        return [_image_layout(part) for part in x], targets
    return _image_layout(x), targets


def _as_it_is(batch: Any) -> Batch:
    return batch


def _image_layout(x: Any) -> Any:
    is_image = isinstance(x, Tensor) and x.ndim == 4
    return x.to(memory_format=torch.channels_last) if is_image else x


def batches(
    dataset: Dataset[Batch],
    batch_size: int,
    shuffle: bool = False,
    generator: torch.Generator | None = None,
) -> DataLoader[Batch]:
    """A loader over a dataset; images are channels-last, unless the dataset says otherwise.

    Args:
        dataset: :class:`Arrays`, :class:`TaskArrays` or any other one.
        batch_size: Samples per batch, or as many as a loader that was given has, if these are
            fewer; the last batch has what is left.
        shuffle: In another order in every pass.
        generator: Draws that order.

    Returns:
        An ordinary ``DataLoader``.
    """
    # Who gave a loader knows how much fits into memory.
    own = dataset.batch_size if isinstance(dataset, OfLoader) else None
    return DataLoader(
        dataset,
        batch_size=min(batch_size, own or batch_size),
        shuffle=shuffle,
        generator=generator,
        collate_fn=collate_fn(dataset),
        num_workers=getattr(dataset, "num_workers", 0),
    )


def collate_fn(dataset: Dataset[Any]) -> Callable[[Any], Any]:
    """What makes a batch of what a dataset gives for a list of indices.

    Args:
        dataset: Any.
    """
    if getattr(dataset, "gives_batches", False):
        return _channels_last if getattr(dataset, "channels_last", True) else _as_it_is
    own: Callable[[Any], Any] = getattr(dataset, "collate_fn", collate)
    return own


def first_batches(dataset: Dataset[Batch], samples: int, batch_size: int = 1000) -> list[Batch]:
    """The beginning of a dataset, held in memory.

    Args:
        dataset: What to read.
        samples: At least so many, unless the dataset has fewer; the last batch is a whole one.
        batch_size: Samples per batch.

    Returns:
        Ready batches.
    """
    held: list[Batch] = []
    for batch in batches(dataset, min(samples, batch_size)):
        held.append(batch)
        samples -= batch_length(batch)
        if samples <= 0:
            break
    return held
