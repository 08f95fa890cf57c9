"""Copies of a network's structure that share its tensors."""

from functools import partial

import pytest
import torch
from torch import nn

from lorpman.manifold.network_view import (
    copy_sharing_weights,
    has_hidden_references,
    view_modules,
)


class Hidden(nn.Module):
    """Runs a layer that it also holds where torch does not look."""

    def __init__(self, hide):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(()))
        self.hidden = hide(self.layer)

    def forward(self, x):
        self.count += 1
        hidden = self.hidden
        while not callable(hidden):
            hidden = next(iter(hidden.values() if isinstance(hidden, dict) else hidden))
        return hidden(x)


HIDING = {
    "list": lambda layer: [layer],
    "mapping": lambda layer: {"deep": (layer,)},
    "method": lambda layer: layer.forward,
    "partial": lambda layer: partial(layer.forward),
    "argument": lambda layer: partial(nn.Module.__call__, layer),
    "child": lambda layer: None,
}


def test_a_view_has_the_same_tensors_and_other_modules():
    network = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Sequential(nn.ReLU()))
    twins = view_modules(network, hidden=False)
    view = twins[network]
    assert next(iter(twins.values())) is view
    assert [type(m) for m in view.modules()] == [type(m) for m in network.modules()]
    assert not set(view.modules()) & set(network.modules())
    pairs = zip(
        view.state_dict(keep_vars=True).values(),
        network.state_dict(keep_vars=True).values(),
        strict=True,
    )
    assert all(mine is its for mine, its in pairs)
    view[0].forward = lambda x: x
    assert "forward" not in vars(network[0])


@pytest.mark.parametrize("hide", [h for n, h in HIDING.items() if n != "child"])
def test_a_layer_that_is_held_elsewhere_is_the_views_own(hide):
    network, x = Hidden(hide), torch.randn(2, 3)
    assert has_hidden_references(network)
    twins = view_modules(network, hidden=True)
    twins[network.layer].register_forward_hook(lambda *_: pytest.fail("hook of the view"))
    network(x)
    view = twins[network]
    assert view.layer.weight is network.layer.weight
    held = view.hidden
    while isinstance(held, list | dict | tuple):
        held = next(iter(held.values() if isinstance(held, dict) else held))
    if isinstance(held, partial):
        held = held.args[0] if held.args else held.func
    assert getattr(held, "__self__", held) is view.layer


def test_children_and_functions_are_not_hidden():
    assert not has_hidden_references(Hidden(HIDING["child"]))
    assert not has_hidden_references(nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2)))


def test_buffers_that_the_view_moves_are_the_networks():
    network = nn.BatchNorm1d(3)
    view_modules(network, hidden=False)[network](torch.randn(5, 3))
    assert network.num_batches_tracked == 1


def test_a_copy_shares_memory_but_not_what_is_trained():
    network = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    network[0].bias.requires_grad_(False)
    copy = copy_sharing_weights(network)
    for (name, mine), its in zip(copy.named_parameters(), network.parameters(), strict=True):
        assert mine.data_ptr() == its.data_ptr()
        assert mine.requires_grad == (name != "0.bias")
    copy.requires_grad_(False)
    assert network[0].weight.requires_grad
    copy(torch.randn(5, 3))
    assert network[1].num_batches_tracked == 0
