import copy

import pytest
import torch
from torch import nn

import lorpman as lp
from properties import assert_same, assert_solution_equals_forward


def _networks(m=2, noise=0.1):
    """Copies of one network, each moved a little, biases left alone."""
    bottom = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 8)
    )
    start = lp.SharedBottom(bottom, [nn.Linear(8, 3) for _ in range(m)])
    networks = [copy.deepcopy(start) for _ in range(m)]
    for network in networks:
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                if not name.endswith("bias") or "bottom.1" in name:
                    parameter.add_(noise * torch.randn_like(parameter))
    return [network.eval() for network in networks]


def test_with_full_rank_every_corner_is_its_network():
    networks, x = _networks(3), torch.randn(5, 1, 6, 6)
    model = lp.LowRank.from_models(networks, rank=64, scale=2.0).eval()
    for i, network in enumerate(networks):
        corner = torch.eye(3)[i]
        assert_same(model(x, corner)[i], network(x)[i])
        for name, value in network.bottom.named_parameters():
            torch.testing.assert_close(
                model.theta(corner)[f"bottom.{name}"], value, atol=1e-5, rtol=1e-4
            )
    assert all(kept == pytest.approx(1.0) for kept in model.energy_kept.values())
    assert "bottom.0.weight" in model.energy_kept
    assert_solution_equals_forward(model, x)


def test_the_middle_is_the_mean():
    networks = _networks(3)
    model = lp.LowRank.from_models(networks, rank=64)
    theta = model.theta(torch.full((3,), 1 / 3))
    for name, value in theta.items():
        if name.startswith("bottom"):
            mean = torch.stack([dict(n.named_parameters())[name] for n in networks]).mean(0)
            torch.testing.assert_close(value, mean, atol=1e-5, rtol=1e-4)


def test_energy_grows_with_rank_and_is_what_was_kept():
    networks = _networks()
    kept = [lp.LowRank.from_models(networks, rank=rank).energy_kept for rank in (1, 2, 4, 8)]
    for name in ("bottom.0.weight", "bottom.4.weight"):
        values = [energies[name] for energies in kept]
        assert values == sorted(values)
        assert 0 < values[0] <= 1.0000001
    model = lp.LowRank.from_models(networks, rank=2)
    name = "bottom.4.weight"
    weights = torch.stack([dict(n.named_parameters())[name].detach() for n in networks])
    wanted = weights - weights.mean(0)
    lost = (model.low_rank_deltas()[name].dense() - wanted).square().sum()
    measured = 1 - (lost / wanted.square().sum()).item()
    assert model.energy_kept[name] == pytest.approx(measured, abs=1e-4)


def test_biases_are_averaged_and_reported():
    networks = _networks()
    with torch.no_grad():
        networks[0].bottom[4].bias.add_(1.0)
    model = lp.LowRank.from_models(networks)
    mean = (networks[0].bottom[4].bias + networks[1].bottom[4].bias) / 2
    assert torch.allclose(model.network.bottom[4].bias, mean)
    assert model.energy_kept["bottom.4.bias"] == 0.0


def test_a_front_from_models_can_be_trained_with_theta_0_frozen():
    networks = _networks()
    model = lp.LowRank.from_models(networks, rank=2)
    before = copy.deepcopy(dict(model.network.bottom.named_parameters()))
    x = torch.randn(20, 1, 6, 6)
    loader = [(x, [torch.zeros(20).long()] * 2)]
    tasks = [lp.Task(n, nn.functional.cross_entropy, lp.accuracy) for n in ("left", "right")]
    history = lp.fit(model, tasks, loader, epochs=5, freeze_epoch=0, progress=False, seed=0)
    assert history[-1].losses["left"] < history[0].losses["left"]
    for name, value in model.network.bottom.named_parameters():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (list, "one network per task, got none"),
        (lambda: [nn.Linear(3, 2), nn.Linear(4, 2)], r"'weight' is \[2, 3\] in network 1 and"),
        (lambda: [nn.Linear(3, 2), nn.Linear(3, 2, bias=False)], "and nothing in network 2"),
    ],
)
def test_other_networks_are_refused(models, message):
    with pytest.raises(lp.UsageError, match=message):
        lp.LowRank.from_models(models())


def test_automatic_ranks_keep_more_than_one_rank_for_all():
    """Where one layer differs in one direction and another in all, for the same parameters."""
    torch.manual_seed(0)
    start = nn.Sequential(nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 12))
    networks = [copy.deepcopy(start) for _ in range(3)]
    with torch.no_grad():
        for network in networks:
            network[0].weight += torch.outer(torch.randn(12), torch.randn(12))
            network[2].weight += torch.randn(12, 12)
    fixed = lp.LowRank.from_models(networks, rank=4)
    auto = lp.LowRank.from_models(networks, rank="auto", budget=2 * 4 * 3 * 24)
    assert auto.num_parameters() == fixed.num_parameters()
    # The differences from the mean of three networks have rank three, not one.
    assert auto.ranks() == {"0.weight": 3, "2.weight": 5}
    assert sum(auto.energy_kept.values()) > sum(fixed.energy_kept.values())
