"""What every dataset of ours is: three splits of tensors that are cut into batches by index."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

Batch = tuple[Tensor | list[Tensor], list[Tensor]]
Augment = Callable[[Tensor, torch.Generator], Tensor]


class Arrays(Dataset[Batch]):
    """Samples held as tensors: ``x`` ``[n, ...]`` and one target ``[n, ...]`` per task.

    ``__getitems__`` cuts a whole batch with one indexing operation per tensor, so that an
    ordinary ``DataLoader`` (and whatever wraps it) pays no cost per sample.
    """

    def __init__(self, x: Tensor, targets: Sequence[Tensor]) -> None:
        lengths = {len(x), *(len(y) for y in targets)}
        if len(lengths) != 1:
            raise ValueError(f"x and targets must have one length, got {sorted(lengths)}")
        self.x = x
        self.targets = list(targets)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Batch:
        return self.x[index], [y[index] for y in self.targets]

    def __getitems__(self, indices: list[int]) -> Batch:
        chosen = torch.as_tensor(indices)
        return self.x[chosen], [y[chosen] for y in self.targets]


@dataclass(frozen=True)
class Splits:
    """Training, validation and test data of one problem."""

    train: Dataset[Batch]
    validation: Dataset[Batch]
    test: Dataset[Batch]


def _as_is(batch: Any) -> Any:
    return batch


def batches(
    dataset: Dataset[Batch],
    batch_size: int,
    shuffle: bool = False,
    generator: torch.Generator | None = None,
) -> DataLoader[Batch]:
    """A loader over ``dataset`` whose order is drawn from ``generator``."""
    return DataLoader(
        dataset,
        batch_size=batch_size,
        shuffle=shuffle,
        generator=generator,
        collate_fn=_as_is if hasattr(dataset, "__getitems__") else None,
    )
