import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.manifold.one_by_one import MergedOnce, OneByOne

ALPHAS = torch.tensor([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]], dtype=torch.float64)
# A convolution, a linear layer on the data, one behind it, norm layers: every kind of weight.
ROWS = nn.Sequential(nn.Linear(40, 30), nn.LayerNorm(30), nn.Tanh(), nn.Linear(30, 3))
IMAGES = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(36, 3))
SHAPES = [(ROWS, (64, 40)), (IMAGES, (4, 1, 5, 5))]


def _trained_a_little(make, network):
    torch.manual_seed(0)
    model = make(network.double(), 2).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def _gradients(model, x, run):
    model.zero_grad()
    value = run(model, x)
    return value.detach(), {n: p.grad for n, p in model.named_parameters() if p.grad is not None}


def _loss(output, alpha):
    return (output.square().mean((0, 1)) * torch.tensor([1.0, 2.0, 3.0])).sum() * alpha[0]


def _together(model, x):
    outputs = model(x, ALPHAS)
    total = sum(_loss(output[None], alpha) for output, alpha in zip(outputs, ALPHAS, strict=True))
    total.backward()
    return total


def _in_turn(model, x):
    networks, total = model.one_by_one(ALPHAS), torch.zeros(())
    for index, alpha in enumerate(ALPHAS):
        (output,) = networks.at(index)(x)
        value = _loss(output[None], alpha)
        if index == len(ALPHAS) - 1:
            value = networks.join(value)
        value.backward()
        total = total + value.detach()
    return total


@pytest.mark.parametrize("make", [lp.LowRank, lp.Convex, lp.Hyper, lp.Cosmos])
@pytest.mark.parametrize(("network", "shape"), SHAPES, ids=["rows", "images"])
def test_gradients_are_those_of_all_preferences_together(make, network, shape):
    model = _trained_a_little(make, network)
    x = torch.randn(shape, dtype=torch.float64)
    value, expected = _gradients(model, x, _together)
    in_turn, gradients = _gradients(model, x, _in_turn)
    torch.testing.assert_close(in_turn, value, check_dtype=False)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-9, atol=1e-12, msg=name)


def test_weights_are_merged_once_for_all_networks(monkeypatch):
    model = _trained_a_little(lp.LowRank, IMAGES)
    calls = []
    merge = model.weights_on
    monkeypatch.setattr(model, "weights_on", lambda *given: calls.append(1) or merge(*given))
    _in_turn(model, torch.randn(4, 1, 5, 5, dtype=torch.float64))
    assert len(calls) == 1


def test_the_layer_on_the_data_is_still_shared(monkeypatch):
    """Its product with the main weight is computed for the first network alone."""
    from lorpman.manifold import input_layer

    model = _trained_a_little(lp.LowRank, ROWS)
    calls = []
    outputs = input_layer._outputs
    monkeypatch.setattr(input_layer, "_outputs", lambda *given: calls.append(1) or outputs(*given))
    _in_turn(model, torch.randn(64, 40, dtype=torch.float64))
    assert len(calls) == 1


def test_factors_on_activations_leave_nothing_to_merge():
    frozen = lp.LowRank(nn.Linear(4, 4), 2, frozen=True)
    assert type(frozen.one_by_one(torch.eye(2))) is OneByOne
    assert type(lp.LowRank(nn.Linear(4, 4), 2).one_by_one(torch.eye(2))) is MergedOnce


def test_what_is_frozen_gets_no_gradient():
    model = _trained_a_little(lp.LowRank, ROWS)
    model.freeze()
    _, gradients = _gradients(model, torch.randn(64, 40, dtype=torch.float64), _in_turn)
    assert gradients
    assert all(name.startswith("deltas.") for name in gradients)
