"""Data as people have it: datasets, loaders, or tensors, and batches of any structure.

A sample is a pair ``(x, y)``; each half may be a tensor, a number, a text, or lists, tuples, dicts
and dataclasses of them. ``y`` has one target per task: a list, a dict or a dataclass by the names
of the tasks, or a tensor whose columns are the tasks.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from lorpman.errors import UsageError


class Rows(Dataset[Any]):
    """A dataset of tensors: sample ``i`` is row ``i`` of each of them.

    Args:
        parts: ``(x, y)``, each of any structure; every tensor in it has the samples in front.

    Raises:
        UsageError: If the tensors have different lengths, or there are none.
    """

    gives_batches = True

    def __init__(self, parts: tuple[Any, Any]) -> None:
        self.parts = map_tensors(_as_tensor, parts)
        lengths: set[int] = set()
        map_tensors(lambda tensor: lengths.add(len(tensor)), self.parts)
        if len(lengths) != 1:
            raise UsageError(
                f"x and y must hold tensors of one length, found {sorted(lengths) or 'none'}"
            )
        (self.length,) = lengths

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        row = range(self.length)[index]
        return map_tensors(lambda tensor: tensor[row], self.parts)

    def __getitems__(self, indices: Sequence[int]) -> Any:
        chosen = torch.as_tensor(indices)
        return map_tensors(lambda tensor: tensor.index_select(0, chosen), self.parts)


class OfLoader(Dataset[Any]):
    """What a ``DataLoader`` reads, and how it makes batches of it.

    Order and size of the batches are the run's: they decide its numbers, and are in its settings.

    Args:
        loader: The loader.

    Raises:
        UsageError: If its order is neither sorted nor shuffled, and would be lost.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        usual = (torch.utils.data.RandomSampler, torch.utils.data.SequentialSampler)
        if not isinstance(loader.sampler, usual):
            raise UsageError(
                f"a loader with a {type(loader.sampler).__name__} cannot be resumed; give the "
                "dataset, or a loader that shuffles"
            )
        self.dataset = as_dataset(loader.dataset)
        self.collate_fn: Callable[[list[Any]], Any] = loader.collate_fn
        # Ours does the same, and knows dataclasses too.
        if loader.collate_fn is default_collate:
            self.collate_fn = collate
        self.num_workers = loader.num_workers

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index]


def as_dataset(given: Any) -> Dataset[Any]:
    """A dataset with a length, of what a person gave for a split.

    Args:
        given: A dataset, a ``DataLoader``, a list of samples, or a pair ``(x, y)`` of tensors.

    Raises:
        UsageError: If it is something else, or has no length.
    """
    if isinstance(given, DataLoader):
        return OfLoader(given)
    if isinstance(given, tuple):
        if len(given) != 2:
            raise UsageError(f"a split of tensors must be a pair (x, y), found {len(given)} parts")
        return Rows((given[0], given[1]))
    # A stream cannot be shuffled, nor taken up again in the middle.
    if isinstance(given, IterableDataset) or not hasattr(given, "__getitem__"):
        raise UsageError(
            "a split must be a Dataset, a DataLoader, a list of samples or a pair (x, y) of "
            f"tensors, found {type(given).__name__}"
        )
    if not hasattr(given, "__len__"):
        raise UsageError(f"a split must have a length: {type(given).__name__} has no __len__")
    dataset: Dataset[Any] = given
    return dataset


def collate(samples: list[Any]) -> Any:
    """Samples of any structure as one batch, as torch's ``default_collate``, and dataclasses.

    Args:
        samples: Of one structure.

    >>> collate([({"a": 1.0}, [2]), ({"a": 3.0}, [4])])
    [{'a': tensor([1., 3.], dtype=torch.float64)}, [tensor([2, 4])]]
    """
    first = samples[0]
    if _is_dataclass(first):
        names = [field.name for field in dataclasses.fields(first)]
        parts = {name: collate([getattr(s, name) for s in samples]) for name in names}
        return dataclasses.replace(first, **parts)
    if isinstance(first, Mapping):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, tuple | list) and len({len(sample) for sample in samples}) == 1:
        columns = [collate(list(column)) for column in zip(*samples, strict=True)]
        # A named tuple takes its fields one by one, not as one sequence.
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    return default_collate(samples)


def map_tensors(function: Callable[[Any], Any], value: Any) -> Any:
    """``value`` with ``function`` of each of its tensors and arrays in their place.

    Args:
        function: From a tensor or an array.
        value: Of any structure: lists, tuples, dicts and dataclasses.
    """
    if isinstance(value, Tensor | np.ndarray):
        return function(value)
    if _is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        parts = {name: map_tensors(function, getattr(value, name)) for name in names}
        return dataclasses.replace(value, **parts)
    if isinstance(value, Mapping):
        return {key: map_tensors(function, part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        parts_of = [map_tensors(function, part) for part in value]
        return type(value)(*parts_of) if hasattr(value, "_fields") else type(value)(parts_of)
    return value


def _as_tensor(value: Any) -> Tensor:
    """An array of numpy in doubles becomes floats, as networks have them."""
    tensor = torch.as_tensor(value)
    is_array = isinstance(value, np.ndarray)
    return tensor.float() if is_array and tensor.dtype == torch.float64 else tensor


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
