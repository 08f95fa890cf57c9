"""Data as people have it: datasets, loaders, or tensors, and batches of any structure.

A sample is a pair ``(x, y)``; each half may be a tensor, a number, a text, or lists, tuples, dicts
and dataclasses of them. ``y`` has one target per task: a list, a dict or a dataclass by the names
of the tasks, or a tensor whose columns are the tasks.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    default_collate,
)

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

    Its batches are kept as they are. What it draws comes from the run's seed, by which a run can
    be resumed; a :class:`SubsetRandomSampler` says which samples there are.

    Args:
        loader: The loader.

    Raises:
        UsageError: If its dataset gives whole batches.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.batch_sampler is None:
            raise UsageError(
                "a loader with batch_size=None reads whole batches; give a dataset of samples, and "
                "a loader that makes batches of them"
            )
        self.dataset, sampler = as_dataset(loader.dataset), loader.sampler
        if isinstance(sampler, SubsetRandomSampler):
            self.dataset = Subset(self.dataset, list(sampler.indices))
            sampler = RandomSampler(self.dataset)
        self.collate_fn: Callable[[list[Any]], Any] = loader.collate_fn
        # Ours does the same, and knows dataclasses too.
        if loader.collate_fn is default_collate:
            self.collate_fn = collate
        self.num_workers = loader.num_workers
        # None where the batches are made by a sampler of the user's own.
        self.batch_size = loader.batch_size
        self._batches: Any = loader.batch_sampler
        if loader.batch_size is not None:
            self._batches = BatchSampler(sampler, loader.batch_size, loader.drop_last)

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index]

    @property
    def reads_all(self) -> bool:
        """Whether a pass reads every sample once, in whatever order."""
        sampler = getattr(self._batches, "sampler", None)
        return self.batch_size is not None and type(sampler) in (RandomSampler, SequentialSampler)

    @property
    def same_in_every_process(self) -> bool:
        """Whether the order depends on nothing but a generator."""
        last = getattr(self._batches, "sampler", self._batches)
        return isinstance(last, SequentialSampler) or hasattr(last, "generator")

    def training_batches(
        self, batch_size: int | None, generator: torch.Generator
    ) -> Sampler[list[int]]:
        """The loader's batches, as indices.

        Args:
            batch_size: Another size than the loader's; None for its own.
            generator: Takes the place of those that the samplers have.

        Raises:
            UsageError: If another size is asked for, where a sampler makes the batches.
        """
        chosen = self._batches
        if batch_size is not None:
            if self.batch_size is None:
                raise UsageError(
                    f"setting batch_size: the training data is a loader whose batches are made by "
                    f"a {type(chosen).__name__}; leave batch_size out"
                )
            chosen = BatchSampler(chosen.sampler, batch_size, chosen.drop_last)
        own: Sampler[list[int]] = _drawing_from(chosen, generator)
        return own


def _drawing_from(sampler: Any, generator: torch.Generator) -> Any:
    """A copy of a sampler, and of the one that it reads, which draws from ``generator``."""
    copied = copy(sampler)
    if hasattr(copied, "generator"):
        copied.generator = generator
    if hasattr(copied, "sampler"):
        copied.sampler = _drawing_from(copied.sampler, generator)
    return copied


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
    return _map_parts(partial(map_tensors, function), value)


def map_columns(function: Callable[[Any], Any], batch: Any) -> Any:
    """``batch`` with ``function`` of each of its columns: its tensors, and its lists of texts.

    Args:
        function: From a tensor ``[n, ...]``, or a list of n texts.
        batch: Of any structure: lists, tuples, dicts and dataclasses.

    >>> map_columns(len, {"age": torch.zeros(2), "name": ["Ada", "Alan"]})
    {'age': 2, 'name': 2}
    """
    texts = isinstance(batch, list) and batch and all(isinstance(part, str) for part in batch)
    if isinstance(batch, Tensor | np.ndarray) or texts:
        return function(batch)
    return _map_parts(partial(map_columns, function), batch)


def has_only_columns(batch: Any) -> bool:
    """Whether single samples can be cut out of a batch; not of one such as a joined graph.

    Args:
        batch: Of any structure.
    """
    if isinstance(batch, Tensor | np.ndarray | str | int | float | None):
        return True
    if _is_dataclass(batch):
        batch = vars(batch)
    if isinstance(batch, Mapping):
        batch = list(batch.values())
    # Not any sequence: what knows how to be indexed may mean something else by it.
    return isinstance(batch, tuple | list) and all(map(has_only_columns, batch))


def _map_parts(function: Callable[[Any], Any], value: Any) -> Any:
    """A list, tuple, dict or dataclass with ``function`` of each of its parts in their place."""
    if _is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **{n: function(getattr(value, n)) for n in names})
    if isinstance(value, Mapping):
        return {key: function(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        parts = [function(part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _as_tensor(value: Any) -> Tensor:
    """An array of numpy in doubles becomes floats, as networks have them."""
    tensor = torch.as_tensor(value)
    is_array = isinstance(value, np.ndarray)
    return tensor.float() if is_array and tensor.dtype == torch.float64 else tensor


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)
