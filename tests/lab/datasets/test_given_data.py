from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import lorpman as lp
from lorpman.lab.datasets.given_data import as_dataset, collate, map_columns, map_tensors
from lorpman.lab.datasets.process_shares import shared_batches
from lorpman.lab.datasets.splits import batches


@dataclass
class Graph:
    nodes: Any
    edges: Any


Pair = namedtuple("Pair", "left right")
X = torch.arange(12.0).view(6, 2)
Y = [torch.arange(6), torch.arange(6.0)]


class Samples(Dataset):
    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


LIST = [(X[i], [Y[0][i], Y[1][i]]) for i in range(6)]
GIVEN = {
    "tensors": (X, Y),
    "arrays": (X.numpy(), [y.numpy() for y in Y]),
    "list": LIST,
    "dataset": Samples(LIST),
    "subset": Subset(Samples(LIST), range(6)),
    "loader": DataLoader(Samples(LIST), batch_size=4, shuffle=True),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_every_form_of_data_gives_the_same_batches(kind):
    loader = batches(as_dataset(GIVEN[kind]), 4)
    shapes = [(tuple(x.shape), [len(y) for y in targets]) for x, targets in loader]
    assert shapes == [((4, 2), [4, 4]), ((2, 2), [2, 2])]
    x, y = next(iter(loader))
    assert torch.equal(x, X[:4])
    assert torch.equal(y[1], Y[1][:4])


@pytest.mark.parametrize(
    ("wrap", "read"),
    [
        (lambda x: {"a": x}, lambda x: x["a"]),
        (lambda x: [x, x], lambda x: x[1]),
        (lambda x: Graph(x, x), lambda x: x.edges),
        (lambda x: Pair(x, x), lambda x: x.right),
    ],
)
def test_a_batch_keeps_the_structure_of_its_samples(wrap, read):
    whole = as_dataset((wrap(X), Y))
    single = as_dataset([(wrap(X[i]), [y[i] for y in Y]) for i in range(6)])
    for data in (whole, single):
        x, _ = next(iter(batches(data, 3)))
        assert type(x) is type(wrap(X))
        assert torch.equal(read(x), X[:3])
        assert torch.equal(read(data[2][0]), X[2])


def test_a_loader_keeps_its_way_to_make_batches():
    loader = DataLoader(LIST, batch_size=3, collate_fn=lambda samples: ("own", len(samples)))
    assert next(iter(batches(as_dataset(loader), 2))) == ("own", 2)


def _order(loader, seed, batch_size=None):
    """The targets of every batch that a training on a loader sees in one pass."""
    order = torch.Generator().manual_seed(seed)
    read = shared_batches(as_dataset(loader), batch_size, order)
    return [y[0].tolist() for _, y in read]


def test_a_loader_is_used_as_it_is():
    plain = DataLoader(LIST, batch_size=4)
    assert _order(plain, 0) == [[0, 1, 2, 3], [4, 5]]
    assert _order(DataLoader(LIST, batch_size=4, drop_last=True), 0) == [[0, 1, 2, 3]]
    assert _order(DataLoader(LIST, batch_sampler=[[5, 0], [1]]), 0) == [[5, 0], [1]]
    weights = [0.0, 0, 0, 1, 0, 0]
    weighted = DataLoader(LIST, batch_size=2, sampler=WeightedRandomSampler(weights, 4))
    assert _order(weighted, 0) == [[3, 3], [3, 3]]
    subset = DataLoader(LIST, batch_size=2, sampler=SubsetRandomSampler([1, 2, 4]))
    assert sorted(target for batch in _order(subset, 0) for target in batch) == [1, 2, 4]
    assert len(as_dataset(subset)) == 3


def test_what_a_loader_draws_follows_the_seed_of_the_run():
    """Also where it has a generator of its own, which other runs may have used before."""
    mine = torch.Generator().manual_seed(5)
    loader = DataLoader(LIST, batch_size=3, sampler=RandomSampler(LIST, generator=mine))
    first, again, other = (_order(loader, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert loader.sampler.generator is mine


def test_a_size_of_the_run_goes_before_that_of_the_loader():
    assert [len(y) for y in _order(DataLoader(LIST, batch_size=4), 0, batch_size=5)] == [5, 1]
    with pytest.raises(lp.UsageError, match="made by a list; leave batch_size out"):
        _order(DataLoader(LIST, batch_sampler=[[0, 1], [2]]), 0, batch_size=5)


def test_scores_are_taken_on_batches_no_larger_than_those_of_the_loader():
    data = as_dataset(DataLoader(LIST, batch_size=4))
    assert [len(x) for x, _ in batches(data, 1000)] == [4, 2]
    assert [len(x) for x, _ in batches(data, 3)] == [3, 3]


def test_texts_stay_lists_and_doubles_of_numpy_become_floats():
    assert collate(["a", "b"]) == ["a", "b"]
    x, _ = as_dataset((np.zeros((3, 2)), [np.zeros(3, dtype=np.int64)] * 2))[0]
    assert x.dtype == torch.float32


def test_every_tensor_is_reached():
    value = {"a": [X, (X, "text")], "b": Graph(X, 3)}
    seen = []
    map_tensors(lambda tensor: seen.append(len(tensor)), value)
    assert seen == [6, 6, 6]


def test_texts_are_columns_of_a_batch():
    batch = ({"a": X, "b": ["x", "y"]}, [Graph(["z"], 3)])
    seen = []
    map_columns(seen.append, batch)
    assert [type(column) for column in seen] == [torch.Tensor, list, list]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((X, Y, Y), r"must be a pair \(x, y\), found 3 parts"),
        ((X, [Y[0][:3]]), r"tensors of one length, found \[3, 6\]"),
        (((), ()), "tensors of one length, found none"),
        (3, "must be a Dataset, a DataLoader, a list of samples or a pair .* found int"),
        (iter(LIST), "must be a Dataset"),
        (DataLoader(LIST, sampler=WeightedRandomSampler([1.0] * 6, 6)), "every sample once"),
        (DataLoader(LIST, batch_sampler=[[0, 1], [2]]), "every sample once"),
        (DataLoader(LIST, batch_size=None), "batch_size=None reads whole batches"),
    ],
)
def test_what_is_no_data_is_named_with_its_split(given, message):
    with pytest.raises(lp.UsageError, match=f"the validation split: .*{message}"):
        lp.Splits(train=LIST, validation=given, test=LIST)


def test_a_dataset_of_tensors_is_one():
    data = as_dataset(TensorDataset(X, torch.stack([Y[0].float(), Y[1]], 1)))
    x, y = next(iter(batches(data, 3)))
    assert (tuple(x.shape), tuple(y.shape)) == ((3, 2), (3, 2))
