"""One network, k networks, and learned preferences keep the promises of every manifold."""

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.manifold.finite import rays
from properties import (
    assert_all_trainable_get_gradient,
    assert_batch_is_loop,
    assert_solution_equals_forward,
    assert_untouched,
)
from rules.small import network

ALPHAS = lp.grid(2, 4)


def _models():
    net = network(norm=True)
    return [
        lp.Single(net, 2),
        lp.Population(net, ALPHAS),
        lp.Learned(lp.LowRank(net, 2), 5),
    ]


@pytest.mark.parametrize("model", _models(), ids=lambda m: type(m).__name__)
def test_every_manifolds_properties(model):
    x = torch.randn(9, 4)
    assert_batch_is_loop(model, x)
    assert_solution_equals_forward(model, x)
    together = model([x, x[:3]], ALPHAS)
    assert [tuple(out.shape) for out in together] == [(4, 9, 1), (4, 3, 1)]


def test_a_single_network_ignores_the_preference():
    model, x = lp.Single(network(), 2), torch.randn(3, 4)
    first, second = (model(x, torch.tensor(a)) for a in ([1.0, 0.0], [0.2, 0.8]))
    assert torch.equal(first[0], second[0])
    assert model.preferences().tolist() == [[0.5, 0.5]]
    assert model.sampler(1.0)(2, 4, None).shape == (1, 2)
    assert_all_trainable_get_gradient(model, x)


def test_members_start_apart_and_answer_the_nearest_preference():
    model = lp.Population(network(), ALPHAS)
    weights = [member.bottom[0].weight for member in model.members]
    assert not any(torch.equal(weights[0], other) for other in weights[1:])
    for near, member in (([0.9, 0.1], 3), ([0.3, 0.7], 1)):
        chosen = model.solution(torch.tensor(near)).bottom[0].weight
        assert torch.equal(chosen, weights[member])
    assert model.nearest(ALPHAS).tolist() == [0, 1, 2, 3]
    assert torch.equal(model.preferences(), ALPHAS)


def test_members_can_start_together():
    model = lp.Population(network(), ALPHAS, independent=False)
    first, *others = [member.bottom[0].weight for member in model.members]
    assert all(torch.equal(first, other) for other in others)


def test_shared_parameters_are_the_bottoms():
    single, population = lp.Single(network(), 2), lp.Population(network(), ALPHAS)
    assert len(single.shared_parameters(ALPHAS[0])) == 2
    chosen = population.shared_parameters(ALPHAS[2])
    assert chosen[0] is population.members[2].bottom[0].weight
    assert len(population.parameters_at(ALPHAS[2])) == 6


def test_the_callers_network_is_untouched():
    net = network()

    def work():
        for model in (lp.Single(net, 2), lp.Population(net, ALPHAS)):
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.add_(1)

    assert_untouched(net, work)


def test_a_network_that_cannot_be_reset_is_named():
    class Raw(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(2))

    with pytest.raises(lp.UsageError, match=r"Raw .* no reset_parameters"):
        lp.Population(Raw(), ALPHAS)


def test_bad_preferences_are_refused():
    with pytest.raises(lp.UsageError, match="must differ"):
        lp.Population(network(), torch.full((2, 2), 0.5))
    with pytest.raises(lp.UsageError, match=r"\[k, m\]"):
        lp.Population(network(), torch.ones(2) / 2)


def test_rays_have_equal_angles():
    losses = 1 / rays(2, 5)[1:-1]
    angles = torch.atan2(losses[:, 1], losses[:, 0])
    torch.testing.assert_close(angles, torch.tensor([1.0, 2.0, 3.0]) * torch.pi / 8)
    assert rays(3, 6).shape == (6, 3)
    assert rays(2, 1).tolist() == [[0.5, 0.5]]
