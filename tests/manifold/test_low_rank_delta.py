"""The low-rank deltas of one weight: what is computed from them, and how they are loaded."""

import pytest
import torch
from torch import nn

from lorpman import LowRank
from lorpman.manifold.low_rank_delta import LowRankDelta
from networks import NETWORKS
from properties import randomise


def test_gram_equals_the_dense_inner_products():
    network, _ = NETWORKS["conv2d"]
    model = LowRank(network(), 5, rank=2)
    randomise(model)
    (delta,) = model.low_rank_deltas().values()
    flat = delta.dense().flatten(1)
    torch.testing.assert_close(delta.gram(), flat @ flat.T)
    chosen = torch.tensor([3, 0])
    torch.testing.assert_close(delta.gram(chosen), flat[chosen] @ flat[chosen].T)


def test_a_watched_delta_takes_the_rank_of_what_is_loaded():
    stored = LowRankDelta(torch.zeros(4, 6), 4, 2, rank=3, watched=True)
    nn.init.normal_(stored.B)
    other = LowRankDelta(torch.zeros(4, 6), 4, 2, rank=1, watched=True)
    other.load_state_dict(stored.state_dict())
    assert other.rank == 3
    assert torch.equal(other.dense(), stored.dense())


def test_a_delta_that_is_not_watched_keeps_its_rank():
    stored, other = (LowRankDelta(torch.zeros(4, 6), 4, 2, rank) for rank in (3, 1))
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.load_state_dict(stored.state_dict())
