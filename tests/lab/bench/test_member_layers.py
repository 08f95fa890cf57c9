"""PaMaL as it is publicly written is our PaMaL."""

import torch
from torch import nn

import lorpman as lp
from lorpman.lab.bench.member_layers import MemberLayer, with_member_layers


def test_layers_of_members_are_pamal():
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 3, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)
    )
    convex = lp.Convex(network, num_tasks=3)
    layers = with_member_layers(network, 3)
    alpha = torch.tensor([0.2, 0.3, 0.5])
    for name, values in convex.members().items():
        layer, _, parameter = name.rpartition(".")
        member_layer = layers.get_submodule(layer)
        assert isinstance(member_layer, MemberLayer)
        member_layer.alpha = alpha
        for member, value in zip(member_layer.members, values, strict=True):
            getattr(member, parameter).data.copy_(value.detach())
    x = torch.rand(2, 1, 4, 4)
    torch.testing.assert_close(layers(x), convex(x, alpha))
