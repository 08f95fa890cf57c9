"""Ranks by prefix; budgets are tested with the manifold (test_automatic_ranks)."""

import pytest
from torch import nn

import lorpman as lp


def _network():
    return nn.ModuleDict(
        {
            "attention": nn.ModuleDict({"query": nn.Linear(9, 9), "key": nn.Linear(9, 9)}),
            "attentive": nn.Linear(9, 9),
        }
    )


def test_the_longest_prefix_counts_and_ends_with_a_name():
    rank = {"": 2, "attention": 3, "attention.key": 4}
    assert lp.LowRank(_network(), 2, rank=rank).ranks() == {
        "attention.query.weight": 3,
        "attention.key.weight": 4,
        "attentive.weight": 2,
    }


@pytest.mark.parametrize(
    ("rank", "message"),
    [
        ({"attention": 3}, "rank has no prefix of 'attentive.weight', found attention; add one"),
        ({"": 3, "mlp": 2}, "rank prefix 'mlp' matches no parameter; the network has attention, a"),
        ({"": 0}, r"rank\[''\] must be a whole number of at least 1, got 0"),
        ({"": "auto"}, r"rank\[''\] must be a whole number"),
        (True, "rank must be a whole number of at least 1, got True"),
        (1.5, "rank must be a whole number"),
    ],
)
def test_ranks_that_do_not_fit_are_refused(rank, message):
    with pytest.raises(lp.UsageError, match=message):
        lp.LowRank(_network(), 2, rank=rank)
