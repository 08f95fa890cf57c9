"""Datasets of tensors: batches are random_partition right, splits partition, orders repeat."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lorpman.errors import UsageError
from lorpman.lab.datasets.splits import (
    Arrays,
    Splits,
    TaskArrays,
    batches,
    bytes_to_unit,
    random_partition,
)
from lorpman.training.resumable_batches import generators


def numbers(n: int = 10) -> Arrays:
    return Arrays(torch.arange(n) * 10, [torch.arange(n), -torch.arange(n)])


@given(n=st.integers(0, 200), seed=st.integers(0, 5))
def test_cut_is_a_partition(n: int, seed: int) -> None:
    parts = random_partition(n, (0.7, 0.1, 0.2), torch.Generator().manual_seed(seed))
    assert sorted(torch.cat(parts).tolist()) == list(range(n))
    assert [len(parts[0]), len(parts[1])] == [7 * n // 10, n // 10]


def test_rows_choose_samples_and_transforms_see_batches() -> None:
    data = Arrays(
        torch.tensor([0, 51, 102, 255], dtype=torch.uint8).view(4, 1, 1, 1),
        [torch.arange(4)],
        rows=torch.tensor([3, 1]),
        transform=bytes_to_unit,
    )
    assert len(data) == 2
    x, (y,) = data.__getitems__([0, 1])
    assert isinstance(x, torch.Tensor)
    torch.testing.assert_close(x.flatten(), torch.tensor([1.0, 0.2]))
    assert y.tolist() == [3, 1]


def test_single_samples_count_from_both_ends() -> None:
    data = numbers()
    assert data[3][0] == 30
    x, (a, b) = data[-1]
    assert x == 90
    assert (int(a), int(b)) == (9, -9)
    with pytest.raises(IndexError):
        data[10]


def test_one_index_is_one_sample_of_every_task() -> None:
    data = TaskArrays(torch.arange(6) * 10, torch.arange(6), torch.tensor([[0, 2, 4], [5, 3, 1]]))
    x, targets = data.__getitems__([2, 0])
    assert [part.tolist() for part in x] == [[40, 0], [10, 50]]
    assert [y.tolist() for y in targets] == [[4, 0], [1, 5]]
    single, _ = data[-1]
    assert [int(part) for part in single] == [40, 10]


def test_the_order_of_batches_repeats_with_its_generator() -> None:
    def order(seed: int) -> list[int]:
        generator = torch.Generator().manual_seed(seed)
        loader = batches(numbers(), 4, shuffle=True, generator=generator)
        return [int(i) for _, (a, _) in loader for i in a]

    assert order(0) == order(0)
    assert order(0) != order(1)
    assert sorted(order(0)) == list(range(10))


def test_lengths_must_agree_and_splits_must_not_be_empty() -> None:
    with pytest.raises(ValueError, match=r"one length, got \[2, 3\]"):
        Arrays(torch.zeros(2), [torch.zeros(3)])
    with pytest.raises(UsageError, match="the validation split is empty"):
        Splits(numbers(), numbers(0), numbers())
    assert generators(numbers()) == []


def test_images_are_laid_out_as_the_dataset_says():
    x, rows = torch.rand(4, 3, 5, 5), torch.tensor([[0, 1], [2, 3]])
    for last in (True, False):
        image, _ = next(iter(batches(Arrays(x, [], channels_last=last), 2)))
        parts, _ = next(iter(batches(TaskArrays(x, torch.arange(4), rows, channels_last=last), 2)))
        for value in (image, *parts):
            assert value.is_contiguous(memory_format=torch.channels_last) == last
