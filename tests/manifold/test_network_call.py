"""A batch by keywords where the network names them, and as it is everywhere else."""

from collections import UserDict

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.manifold.network_call import arguments, call_network
from properties import assert_batch_is_loop, assert_solution_equals_forward, randomise


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(3, 4), nn.Linear(2, 4)

    def forward(self, left, right=None, *, scale=1.0):
        return scale * (self.left(left) + (0 if right is None else self.right(right)))


class Open(nn.Module):
    def forward(self, x, **others):
        return x, others


class One(nn.Module):
    def forward(self, x):
        return x


BATCH = {"left": torch.randn(5, 3), "right": torch.randn(5, 2)}


@pytest.mark.parametrize(
    ("network", "x", "by_keywords"),
    [
        (Pair(), BATCH, True),
        (Pair(), UserDict(BATCH), True),
        (Pair(), {**BATCH, "other": 1}, False),
        (Pair(), {}, False),
        (One(), {"tokens": 1}, False),
        (One(), {"x": 1}, True),
        (Open(), {"x": 1, "more": 2}, True),
        (Open(), {"more": 2}, False),
        (Open(), {"x": 1, 3: 4}, False),
        (One(), [1, 2], False),
    ],
)
def test_a_mapping_of_the_networks_own_names_is_passed_by_keywords(network, x, by_keywords):
    assert arguments(network, x) == (((), dict(x)) if by_keywords else ((x,), {}))


def test_a_call_by_keywords_is_the_networks_own():
    network = Pair()
    expected = network(BATCH["left"], BATCH["right"], scale=2.0)
    assert torch.equal(call_network(network, {**BATCH, "scale": 2.0}), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lp.LowRank(Pair(), 2, rank=2),
        lambda: lp.Convex(Pair(), 2),
        lambda: lp.Hyper(Pair(), 2),
        lambda: lp.Single(Pair(), 2),
        lambda: lp.Population(Pair(), torch.eye(2)),
    ],
    ids=["low rank", "convex", "hyper", "single", "population"],
)
def test_manifolds_take_keyword_batches(make):
    model = make()
    randomise(model)
    assert_batch_is_loop(model, BATCH)
    for alpha in torch.eye(2):
        expected = model.solution(alpha)(**BATCH)
        torch.testing.assert_close(model(BATCH, alpha), expected, atol=1e-5, rtol=1e-5)


def test_a_shared_bottom_gives_its_bottom_keywords():
    network = lp.SharedBottom(Pair(), [nn.Linear(4, 1), nn.Linear(4, 2)])
    features = network.bottom(**BATCH)
    together, apart = network(BATCH), network([BATCH, BATCH])
    for head, one, other in zip(network.heads, together, apart, strict=True):
        assert torch.equal(one, head(features))
        assert torch.equal(other, head(features))
    assert_solution_equals_forward(lp.LowRank(network, 2), BATCH)


def test_fit_and_evaluate_take_keyword_batches():
    network = lp.SharedBottom(Pair(), [nn.Linear(4, 1), nn.Linear(4, 1)])
    loss = nn.functional.mse_loss
    tasks = [lp.Task(name, loss, loss, maximise=False, reference=9.0) for name in ("a", "b")]
    loader = [(BATCH, [torch.zeros(5, 1), torch.ones(5, 1)])] * 20
    model = lp.LowRank(network, 2)
    before = lp.evaluate(model, tasks, loader).hypervolume()
    lp.fit(model, tasks, loader, epochs=2, progress=False)
    assert lp.evaluate(model, tasks, loader).hypervolume() > before
