"""Training in several processes: one process's share of every batch."""

from collections.abc import Iterator, Sequence

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, Sampler

from lorpman.lab.datasets.splits import Batch, batches


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

    def __init__(self, whole: Sequence[list[int]] | BatchSampler, rank: int, world: int) -> None:
        self.whole, self.rank, self.world = whole, rank, world

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.whole:
            even = len(batch) - len(batch) % self.world
            if even:
                yield batch[self.rank : even : self.world]

    def __len__(self) -> int:
        return len(self.whole)


def shared_batches(
    dataset: Dataset[Batch], batch_size: int, generator: torch.Generator, rank: int, world: int
) -> DataLoader[Batch]:
    """Shuffled batches; those of all processes together are the batches of a single one.

    Args:
        dataset: What to read.
        batch_size: Of the batches of all processes together.
        generator: Draws the order; in the same state in every process.
        rank: The number of this process.
        world: How many processes there are.

    Returns:
        A loader with this process's share.
    """
    if world == 1:
        return batches(dataset, batch_size, shuffle=True, generator=generator)
    # Only for its collation, which knows how the dataset lays images out.
    single = batches(dataset, batch_size)
    order = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
    whole = BatchSampler(order, batch_size, drop_last=False)
    return DataLoader(
        dataset,
        batch_sampler=ProcessShares(whole, rank, world),
        generator=generator,
        collate_fn=single.collate_fn,
    )
