import pytest
import torch

from lorpman.lab.datasets.process_shares import ProcessShares, shared_batches
from lorpman.lab.datasets.splits import Arrays


def _batches(batch_size: int, rank: int, world: int) -> list[list[int]]:
    numbers = torch.arange(22)
    generator = torch.Generator().manual_seed(1)
    loader = shared_batches(Arrays(numbers, [numbers]), batch_size, generator, rank, world)
    return [x.tolist() for x, _ in loader]


@pytest.mark.parametrize("world", [2, 3, 4])
def test_the_shares_of_all_processes_are_the_batches_of_one(world: int) -> None:
    whole = _batches(6, 0, 1)
    shares = [_batches(6, rank, world) for rank in range(world)]
    for parts in zip(*shares, strict=True):
        assert len({len(part) for part in parts}) == 1
    for batch, parts in zip(whole, zip(*shares, strict=True), strict=False):
        together = {number for part in parts for number in part}
        assert len(together) == len(batch) - len(batch) % world
        assert together <= set(batch)


def test_a_batch_that_is_smaller_than_the_processes_are_many_is_left_out() -> None:
    whole = [[0, 1, 2], [3]]
    assert list(ProcessShares(whole, 1, 2)) == [[1]]
