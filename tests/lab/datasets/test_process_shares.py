import torch

from lorpman.lab.datasets.process_shares import shared_batches
from lorpman.lab.datasets.splits import Arrays


def test_shares_make_up_the_batches_of_one_process():
    data = Arrays(torch.arange(22), [torch.arange(22)])

    def run(rank, world):
        generator = torch.Generator().manual_seed(0)
        loader = shared_batches(data, 8, generator, rank, world)
        return [[set(x.tolist()) for x, _ in loader] for _ in range(2)]

    for whole, left, right in zip(run(0, 1), run(0, 2), run(1, 2), strict=True):
        for batch, ours, theirs in zip(whole, left, right, strict=True):
            assert len(ours) == len(theirs)
            assert ours | theirs == batch
            assert not ours & theirs
