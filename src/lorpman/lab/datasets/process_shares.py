"""The batches of a training: a loader's own or ours, and one process's share of each."""

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, Sampler

from lorpman.errors import UsageError
from lorpman.lab.datasets.given_data import OfLoader
from lorpman.lab.datasets.splits import Batch, batches, collate_fn

USUAL_BATCH = 256
"""Samples per step, where neither a setting nor a loader says it."""


class ProcessShares(Sampler[list[int]]):
    """The rows of every global batch that belong to process ``rank`` of ``world``.

    All shares have one size, so that the mean of the processes' means is the mean over the
    batch: what cannot be shared out evenly, at the end of a pass, is left out.

    Args:
        whole: The batches of all processes together, as indices.
        rank: The number of this process.
        world: How many processes there are.

    >>> whole = BatchSampler(range(10), 4, drop_last=False)
    >>> list(ProcessShares(whole, 0, 2)), list(ProcessShares(whole, 1, 2))
    ([[0, 2], [4, 6], [8]], [[1, 3], [5, 7], [9]])
    """

    def __init__(self, whole: Any, rank: int, world: int) -> None:
        self.whole, self.rank, self.world = whole, rank, world

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.whole:
            even = len(batch) - len(batch) % self.world
            if even:
                yield batch[self.rank : even : self.world]

    def __len__(self) -> int:
        return len(self.whole)


def samples_per_batch(dataset: Dataset[Any]) -> int | None:
    """How many samples a step has, where no setting says it.

    Args:
        dataset: What is learned from.

    Returns:
        None where a sampler of a loader decides it, batch for batch.
    """
    return dataset.batch_size if isinstance(dataset, OfLoader) else USUAL_BATCH


def shared_batches(
    dataset: Dataset[Batch],
    batch_size: int | None,
    generator: torch.Generator,
    rank: int = 0,
    world: int = 1,
) -> DataLoader[Batch]:
    """Batches to learn from; those of all processes together are the batches of a single one.

    Those of a loader are as it has them, others are shuffled.

    Args:
        dataset: What to read.
        batch_size: Of the batches of all processes together; None for those of a loader, where
            the dataset is of one, and else for :data:`USUAL_BATCH`.
        generator: Draws the order; in the same state in every process.
        rank: The number of this process.
        world: How many processes there are.

    Returns:
        A loader with this process's share.

    Raises:
        UsageError: If a loader's batches cannot have this size, or cannot be shared.
    """
    if not isinstance(dataset, OfLoader) and world == 1:
        return batches(dataset, batch_size or USUAL_BATCH, shuffle=True, generator=generator)
    if isinstance(dataset, OfLoader):
        if world > 1 and not dataset.same_in_every_process:
            raise UsageError(
                "the training data is a loader whose sampler may draw another order in every "
                "process; let it draw from its attribute 'generator'"
            )
        read, whole = dataset.dataset, dataset.training_batches(batch_size, generator)
    else:
        order = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
        read, whole = dataset, BatchSampler(order, batch_size or USUAL_BATCH, drop_last=False)
    return DataLoader(
        read,
        batch_sampler=whole if world == 1 else ProcessShares(whole, rank, world),
        generator=generator,
        collate_fn=collate_fn(dataset),
        num_workers=getattr(dataset, "num_workers", 0),
    )
