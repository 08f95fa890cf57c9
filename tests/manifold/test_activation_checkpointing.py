"""Activation checkpointing: refused where it would be wrong, right around the whole manifold."""

import warnings
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint

import lorpman as lp
from lorpman.errors import UsageError

ALPHAS = torch.tensor([[0.2, 0.8], [0.7, 0.3]])


class Checkpointed(nn.Module):
    def __init__(self, reentrant=False):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
        self.reentrant = reentrant

    def forward(self, x):
        return checkpoint(self.second, self.first(x), use_reentrant=self.reentrant)


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
@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_inside_the_network_is_refused_in_training(merge, reentrant):
    model, x = _model(Checkpointed(reentrant), merge=merge), torch.randn(5, 6)
    for alpha in (ALPHAS, ALPHAS[0]):
        for around in (nullcontext, save_on_cpu):
            with around(), pytest.raises(UsageError, match="activation checkpointing"):
                model(x, alpha)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are no gradients
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


def test_a_checkpointed_encoder_before_the_manifold_is_no_part_of_it():
    torch.manual_seed(0)
    encoder, model = nn.Linear(6, 6), _model(nn.Linear(6, 2))
    x = torch.randn(5, 6, requires_grad=True)
    encoded = checkpoint(encoder, x, use_reentrant=True)
    assert model(encoded, ALPHAS).grad_fn is not None


def test_hooks_can_be_set_again_after_a_refusal():
    model, x = _model(Checkpointed()), torch.randn(5, 6)
    with pytest.raises(UsageError, match="activation checkpointing"):
        model(x, ALPHAS)
    assert checkpoint(Checkpointed(), x.requires_grad_(), use_reentrant=False).grad_fn is not None
