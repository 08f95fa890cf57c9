"""Activation checkpointing: refused where it would be wrong, right around the whole manifold."""

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint

import lorpman as lp

ALPHAS = torch.tensor([[0.2, 0.8], [0.7, 0.3]])


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x):
        return checkpoint(self.second, self.first(x), use_reentrant=False)


def _model(network, **options):
    model = lp.LowRank(network, 2, rank=2, **options)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 4)
    return model


def _gradients(model, output):
    return torch.autograd.grad(output.square().sum(), list(model.parameters()), allow_unused=True)


@pytest.mark.parametrize("merge", ["auto", "product"])
def test_checkpointing_inside_the_network_is_refused_in_training(merge):
    model, x = _model(Checkpointed(), merge=merge), torch.randn(5, 6)
    for alpha in (ALPHAS, ALPHAS[0]):
        with pytest.raises(RuntimeError, match="activation checkpointing"):
            model(x, alpha)
    with torch.no_grad():
        assert torch.allclose(model(x, ALPHAS)[0], model.solution(ALPHAS[0])(x), atol=1e-6)


@pytest.mark.parametrize("merge", ["auto", "product"])
@pytest.mark.parametrize("alpha", [ALPHAS, ALPHAS[0]], ids=["two", "one"])
def test_around_the_whole_manifold_the_gradients_are_the_same(merge, alpha):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    model, x = _model(network, merge=merge), torch.randn(5, 6)
    plain = _gradients(model, model(x, alpha))
    again = _gradients(model, checkpoint(model, x, alpha, use_reentrant=False))
    with save_on_cpu():
        kept = _gradients(model, model(x, alpha))
    for expected, *found in zip(plain, again, kept, strict=True):
        for gradient in found:
            assert torch.equal(gradient, expected)
    with pytest.raises(RuntimeError, match="activation checkpointing"):
        _model(Checkpointed())(x, alpha)
