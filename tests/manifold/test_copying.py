"""Networks that cannot be copied are refused, and the reason is named."""

import threading

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.manifold.copying import attributes, copy_network


def test_a_copy_shares_nothing():
    network = nn.Linear(3, 2)
    network.remembered = [torch.zeros(2)]
    copied = copy_network(network)
    assert torch.equal(copied.weight, network.weight)
    assert copied.weight is not network.weight
    assert copied.remembered[0] is not network.remembered[0]


class _Keeps(nn.Module):
    def __init__(self, where):
        super().__init__()
        self.layer, self.where = nn.Linear(3, 2), where

    def forward(self, x):
        z = self.layer(x)
        self.where(self, z)
        return z


@pytest.mark.parametrize(
    "where",
    [lambda m, z: setattr(m, "last", z), lambda m, z: setattr(m, "last", {"deep": [0, z]})],
)
@pytest.mark.parametrize("make", [lp.LowRank, lp.Convex, lp.Single, lp.Cosmos])
def test_a_kept_activation_is_named(make, where):
    network = nn.Sequential(_Keeps(where))
    network(torch.zeros(1, 3))
    message = "since module '0' keeps a computed tensor in its attribute 'last'; keep value.detach"
    with pytest.raises(lp.UsageError, match=message):
        make(network, 2)


def test_anything_else_is_told_in_the_words_of_its_error():
    network = nn.Linear(3, 2)
    network.lock = threading.Lock()
    with pytest.raises(lp.UsageError, match=r"Linear cannot be copied: cannot pickle .*lock"):
        lp.LowRank(network, 2)


def test_attributes_are_those_that_are_not_registered():
    network = nn.Sequential(nn.BatchNorm1d(2))
    network[0].ref = [network[0].weight]
    found = [
        (name, key) for name, key, value in attributes(network) if isinstance(value, nn.Parameter)
    ]
    assert found == [("0", "ref")]
