"""A network run with other weights than its own."""

import torch
from torch import nn

from lorpman import LowRank
from networks import NETWORKS
from properties import assert_same, randomise


def _make(kind):
    network, x = NETWORKS[kind]
    model = LowRank(network(), 3, rank=2, scale=1.5)
    randomise(model)
    return model, x()


def test_theta_of_several_preferences_is_led_by_their_number():
    model, _ = _make("batch norm")
    alphas = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    theta = model.theta(alphas)
    for j, alpha in enumerate(alphas):
        for name, value in model.theta(alpha).items():
            torch.testing.assert_close(theta[name][j], value)


def test_solution_shares_no_memory():
    model, x = _make("linear")
    alpha = torch.tensor([0.2, 0.3, 0.5])
    before = model(x, alpha)
    with torch.no_grad():
        for parameter in model.solution(alpha).parameters():
            parameter.fill_(7.0)
    assert_same(model(x, alpha), before)


def test_a_solution_trains_what_the_given_network_trains():
    network = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    network[0].weight.requires_grad_(False)
    model = LowRank(network, 2)
    model.freeze()
    flags = {n: p.requires_grad for n, p in model.solution([0.5, 0.5]).named_parameters()}
    assert flags == {n: p.requires_grad for n, p in network.named_parameters()}


def test_alpha_keeps_its_precision_beside_integer_weights():
    class Coded(nn.Module):
        def __init__(self):
            super().__init__()
            self.codes = nn.Parameter(torch.ones(2, 2, dtype=torch.int8), requires_grad=False)
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            return self.layer(x)

    model = LowRank(Coded(), 2)
    (delta,) = model.low_rank_deltas().values()
    torch.nn.init.normal_(delta.B)
    x = torch.randn(2, 4)
    assert not torch.equal(model(x, [0.3, 0.7]), model(x, [0.6, 0.4]))


def test_the_networks_own_weights_are_back_after_an_error():
    model, x = _make("linear")
    before = dict(model.network.named_parameters())
    try:
        model(x[:, :1], torch.tensor([0.2, 0.3, 0.5]))
    except RuntimeError:
        pass
    else:
        raise AssertionError("inputs of a wrong size were taken")
    after = dict(model.network.named_parameters())
    assert all(after[name] is parameter for name, parameter in before.items())
