"""Factors on activations: the same network as a merged one, at the price of narrow products."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import lorpman as lp
from lorpman.manifold.applied_factors import LateParameters, can_apply
from networks import NETWORKS
from networks import frozen_front as _frozen
from properties import (
    assert_all_trainable_get_gradient,
    assert_batch_is_loop,
    assert_callers_do_not_disturb,
    assert_solution_equals_forward,
    assert_untouched,
)

ALPHAS = torch.tensor([[0.2, 0.8], [0.7, 0.3]])


def _gradients(model, output):
    trained = [p for p in model.parameters() if p.requires_grad]
    return torch.autograd.grad(output.square().sum(), trained)


def _no_merging(monkeypatch):
    def refuse(self, key):
        raise AssertionError(f"{key} was asked for")

    monkeypatch.setattr(LateParameters, "__getitem__", refuse)


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_frozen_manifold_keeps_every_invariant(kind):
    network, x = NETWORKS[kind]
    model, x = _frozen(network(), 3), x()
    assert model.frozen
    assert_batch_is_loop(model, x)
    assert_solution_equals_forward(model, x, 1e-5)
    assert_all_trainable_get_gradient(model, x)
    assert_callers_do_not_disturb(model, x)
    assert_untouched(model.network, lambda: model(x, torch.eye(3)))


APPLIED = {
    "linear": (lambda: nn.Linear(6, 4), lambda: torch.randn(3, 2, 6)),
    "embedding": (lambda: nn.Embedding(10, 4, padding_idx=2), lambda: torch.arange(10)),
    "pointwise": (lambda: nn.Conv2d(4, 6, 1, stride=2), lambda: torch.randn(3, 4, 5, 5)),
    "row": (lambda: nn.Conv2d(4, 6, (1, 3), padding=(0, 2)), lambda: torch.randn(3, 4, 5, 5)),
    "unbatched": (lambda: nn.Conv1d(4, 6, 1), lambda: torch.randn(4, 5)),
    "tied": NETWORKS["tied"],
}


@pytest.mark.parametrize("kind", APPLIED)
def test_values_and_gradients_are_those_of_merging_without_merging(kind, monkeypatch):
    make, x = APPLIED[kind]
    model, x = _frozen(make()), x()
    merged = copy.deepcopy(model)
    merged._applies_factors = False
    expected = [_tensor(merged(x, alpha)) for alpha in ALPHAS]
    wanted = _gradients(merged, torch.stack(expected))
    _no_merging(monkeypatch)
    found = [_tensor(model(x, alpha)) for alpha in ALPHAS]
    for mine, its in zip(
        [*found, *_gradients(model, torch.stack(found))], [*expected, *wanted], strict=True
    ):
        torch.testing.assert_close(mine, its, atol=2e-5, rtol=1e-4)


def _tensor(output):
    return output["logits"] if isinstance(output, dict) else output


@pytest.mark.parametrize(
    "module",
    [
        nn.Conv2d(4, 4, 3),
        nn.Conv2d(4, 4, 1, groups=2),
        nn.Conv2d(4, 4, (1, 3), padding=(0, 1), padding_mode="circular"),
        nn.ConvTranspose2d(4, 4, 1),
        nn.Embedding(4, 4, max_norm=1.0),
        nn.Embedding(4, 4, scale_grad_by_freq=True),
        nn.Bilinear(2, 2, 2),
    ],
    ids=str,
)
def test_what_a_layer_cannot_apply_is_merged(module):
    assert not can_apply(module, "weight")
    assert not can_apply(nn.Linear(2, 2), "bias")


def test_a_layer_with_a_forward_of_its_own_is_merged():
    class Scaled(nn.Embedding):
        def forward(self, x):
            return 3.0 * super().forward(x)

    assert not can_apply(Scaled(4, 4), "weight")
    assert_solution_equals_forward(_frozen(Scaled(4, 4)), torch.arange(4), 1e-5)


def test_every_sample_can_have_a_preference_of_its_own(monkeypatch):
    network = nn.Sequential(nn.Embedding(9, 5), nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 2))
    model, x = _frozen(network), torch.randint(9, (3, 4))
    alphas = lp.dirichlet(2, 3)
    with model.at(alphas) as one_pass:
        together = one_pass(x)
    for i, alpha in enumerate(alphas):
        torch.testing.assert_close(together[i], model(x, alpha)[i])
    images, convolution = torch.randn(3, 4, 5, 5), _frozen(nn.Conv2d(4, 2, 1))
    with convolution.at(alphas) as one_pass:
        torch.testing.assert_close(one_pass(images)[1], convolution(images, alphas[1])[1])
    with model.at(alphas) as one_pass:  # one row of words that all samples share
        torch.testing.assert_close(one_pass(x[:1])[2], model(x[:1], alphas[2])[0])
    with model.at(alphas) as one_pass, pytest.raises(lp.UsageError, match="led by 3 samples"):
        one_pass(x[:2])


def test_preferences_per_sample_are_refused_where_a_weight_must_be_merged():
    model = _frozen(nn.Conv2d(4, 2, 3))
    with pytest.raises(lp.UsageError, match="weight of a Conv2d was asked for"), model.at(ALPHAS):
        pass


def test_a_base_in_half_precision_keeps_it_and_trains_single_precision():
    network = nn.Sequential(nn.Embedding(5, 6), nn.Linear(6, 4)).bfloat16()
    model = _frozen(network)
    assert {p.dtype for p in model.deltas.parameters()} == {torch.float32}
    x = torch.arange(5)
    output = model(x, ALPHAS[0])
    assert output.dtype == torch.bfloat16
    assert model.solution(ALPHAS[0])[1].weight.dtype == torch.bfloat16
    torch.testing.assert_close(output, model.solution(ALPHAS[0])(x), atol=0.1, rtol=0.1)
    _gradients(model, output.float())


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(16, 16), nn.Dropout(0.3), nn.Linear(16, 2))
        self.reentrant = reentrant

    def forward(self, x):
        if self.reentrant is None:
            return self.second(self.first(x))
        return checkpoint(self.second, self.first(x), use_reentrant=self.reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("alpha", [ALPHAS, ALPHAS[0]], ids=["two", "one"])
def test_checkpointing_inside_the_network_gives_the_same_gradients(reentrant, alpha):
    model, x = _frozen(Checkpointed(None)), torch.randn(5, 6)
    gradients = []
    for kind in (None, reentrant):
        model.network.reentrant = kind
        model.zero_grad()
        torch.manual_seed(3)
        model(x, alpha).square().sum().backward()
        gradients.append([p.grad for p in model.deltas.parameters()])
    for mine, its in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, its)
