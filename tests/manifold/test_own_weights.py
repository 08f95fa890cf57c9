"""Networks that would silently run with other weights are found before training."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman.manifold.own_weights import check_own_weights
from networks import NETWORKS
from small_training import fit_small, make_loader, make_network, same_weights


class _ReadsTwice(nn.Module):
    """One weight is read through a second reference."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(4, 4), nn.Linear(4, 2)
        self.ref = [self.f.weight]

    def forward(self, x):
        return list(self.g(F.linear(x, self.ref[0], self.f.bias)).split(1, 1))


class _ReadsByFunction(nn.Module):
    """A function that was made with the weight keeps it when the network is copied."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(4, 4), nn.Linear(4, 2)
        weight = self.f.weight
        self.function = lambda x: x @ weight.T

    def forward(self, x):
        return list(self.g(self.function(x)).split(1, 1))


class _Holder:
    def __init__(self, weight):
        self.weight = weight


class _Hidden(nn.Module):
    """The weight hides in an object."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.holder = _Holder(self.weight)

    def forward(self, x):
        return x @ self.holder.weight


def test_a_second_reference_is_named():
    message = "^module '0' reads parameter '0.f.weight' through its attribute 'ref', so that train"
    with pytest.raises(lp.UsageError, match=message):
        check_own_weights(lp.LowRank(nn.Sequential(_ReadsTwice()), 2), torch.randn(6, 4))


def test_a_reference_in_an_object_is_found_by_what_the_module_gives_out():
    network = nn.Sequential(nn.Linear(4, 4), _Hidden(), nn.Linear(4, 2))
    with pytest.raises(lp.UsageError, match=r"^module '1' does not read its weights"):
        check_own_weights(lp.LowRank(network, 2), torch.randn(6, 4))


def test_a_weight_that_a_function_holds_on_to_is_found():
    message = r"reads a weight \[4, 4\], like parameter 'f.weight' that is none of its parameters"
    with pytest.raises(lp.UsageError, match=message):
        check_own_weights(lp.LowRank(_ReadsByFunction(), 2), torch.randn(6, 4))


class _Bypasses(nn.Module):
    """Has a layer with factors, and computes with something else."""

    def __init__(self):
        super().__init__()
        self.f, self.g = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x):
        return self.g(x)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (_ReadsTwice, "reads parameter 'f.weight' through its attribute 'ref', where factors do"),
        (_ReadsByFunction, r"reads a weight \[4, 4\], like parameter 'f.weight' that is none"),
        (_Bypasses, "_Bypasses uses none of the layers that have factors, so that nothing can be"),
    ],
)
def test_networks_that_stay_as_they_came_are_looked_at_without_copies(
    network, message, monkeypatch
):
    monkeypatch.setattr(lp.LowRank, "solution", lambda *args: pytest.fail("copied"))
    with pytest.raises(lp.UsageError, match=message):
        check_own_weights(lp.LowRank(network(), 2, frozen=True), torch.randn(6, 4))
    check_own_weights(lp.LowRank(nn.Linear(4, 2), 2, frozen=True), torch.randn(6, 4))


def test_fit_refuses_it_before_the_first_step():
    model = lp.LowRank(_ReadsTwice(), 2)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(lp.UsageError, match=r"reads parameter 'f.weight' through its attribute"):
        fit_small(model)
    assert same_weights(model, before)


class _Keeps(nn.Module):
    def __init__(self, only_in_training):
        super().__init__()
        self.f, self.only_in_training = nn.Linear(4, 2), only_in_training

    def forward(self, x):
        z = self.f(x)
        if self.training or not self.only_in_training:
            self.last = z
        return list(z.split(1, 1))


@pytest.mark.parametrize("only_in_training", [True, False])
def test_a_network_that_cannot_be_copied_once_it_has_run_is_refused(only_in_training):
    message = "module 'network' keeps a computed tensor in its attribute 'last'|the network itself"
    with pytest.raises(lp.UsageError, match=message):
        fit_small(lp.LowRank(_Keeps(only_in_training), 2))


def test_the_older_spectral_norm_is_refused():
    bottom = nn.utils.spectral_norm(nn.Linear(4, 4))
    network = lp.SharedBottom(bottom, [nn.Linear(4, 1), nn.Linear(4, 1)])
    with pytest.raises(lp.UsageError, match=r"'weight'; .*spectral_norm .*parametrizations"):
        fit_small(lp.LowRank(network, 2))


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("make", [lp.LowRank, lp.Convex, lp.Single, lp.Hyper])
def test_ordinary_networks_pass_and_stay_as_they_are(kind, make):
    network, x = NETWORKS[kind]
    model = make(network(), 2)
    before, modes = copy.deepcopy(model.state_dict()), [m.training for m in model.modules()]
    check_own_weights(model, x())
    assert same_weights(model, before)
    assert [m.training for m in model.modules()] == modes
    assert all(p.grad is None for p in model.parameters())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_types_pass(dtype):
    model = lp.LowRank(make_network().to(dtype), 2)
    check_own_weights(model, torch.randn(6, 4, dtype=dtype))


class _Remembers(nn.Module):
    """Each run depends on the one before, and on random numbers, also when predicting."""

    def __init__(self):
        super().__init__()
        self.f, self.state = nn.Linear(4, 2), torch.zeros(2)

    def forward(self, x):
        z = self.f(x) + self.state + torch.randn(2)
        self.state = z.detach().mean(0)
        return z


def test_a_network_that_remembers_or_draws_passes():
    check_own_weights(lp.LowRank(_Remembers(), 2), torch.randn(6, 4))


def test_training_is_the_same_with_and_without_the_look(monkeypatch):
    looked, _ = fit_small(loader=make_loader())
    monkeypatch.setattr("lorpman.training.fit.check_own_weights", lambda *_: None)
    blind, _ = fit_small(loader=make_loader())
    assert same_weights(looked, blind)
