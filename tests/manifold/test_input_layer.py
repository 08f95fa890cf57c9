"""A linear layer on the data itself: the same numbers as with merged weights, for less work."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman.manifold import input_layer

WIDTH, SAMPLES = 24, 40


class Flat(nn.Module):
    """A view of the data is still the data."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, 3)

    def forward(self, x):
        return self.layer(x.reshape(len(x), 2, -1).flatten(1))


class Changed(Flat):
    """What is made from the data is not the data."""

    def forward(self, x):
        return self.layer(x - 1)


class Twice(Flat):
    """One layer on the data, used twice and changed in place between."""

    def forward(self, x):
        return self.layer(x).relu_() + self.layer(x)


class WeightInView(Flat):
    """A network that looks into its layer."""

    def forward(self, x):
        return self.layer(x) * self.layer.weight.norm() + self.layer.weight.sum(1)


class PeekWithoutGradients(Flat):
    """Somebody looks at the weight where gradients are off."""

    def forward(self, x):
        with torch.no_grad():
            x = x.to(self.layer.weight.dtype) * (1 + 0 * self.layer.weight.norm())
        return self.layer(x * 1)


class PartWithoutGradients(Flat):
    """A part of the network runs without gradients, on the same data."""

    def forward(self, x):
        with torch.no_grad():
            target = self.layer(x)
        return self.layer(x) + target


class OwnBias(nn.Module):
    """A bias that is made anew, and differs by preference."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(WIDTH, 30), nn.LayerNorm(30)

    def forward(self, x):
        return F.linear(x, self.layer.weight, self.layer.bias * self.norm.weight)


class Renormed(Flat):
    """The network changes its weight before it uses it."""

    def forward(self, x):
        self.layer.weight.data = self.layer.weight.data.renorm(2, 0, 0.1)
        return self.layer(x)


class Rounding(torch.autograd.Function):
    @staticmethod
    def forward(_, weight):
        return weight.sign()

    @staticmethod
    def backward(_, gradient):
        return gradient


class Binary(Flat):
    """A function of its own on the weight."""

    def forward(self, x):
        return F.linear(x, Rounding.apply(self.layer.weight), self.layer.bias)


class InHalf(Flat):
    """Fewer bits for a part of the network."""

    def forward(self, x):
        with torch.autocast("cpu", torch.float16):
            return self.layer(x.float()).double() + self.layer(x)


class ByRow(Flat):
    """Every row by itself, all at once."""

    def forward(self, x):
        return torch.vmap(self.layer)(x)


class Halves(nn.Module):
    """Several tensors, in a dictionary."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(WIDTH, 3), nn.Linear(WIDTH, 3, bias=False)

    def forward(self, x):
        return self.one(x["a"]) + self.two(x["b"]) + self.one(x["b"])


def _mlp(first=nn.ReLU):
    return nn.Sequential(nn.Linear(WIDTH, 30), first(), nn.Linear(30, 3), nn.ReLU(inplace=True))


def _in_place():
    return nn.Sequential(nn.Linear(WIDTH, 30), nn.ReLU(inplace=True), nn.Linear(30, 2))


def _dropped():
    return nn.Sequential(nn.Dropout(0.5), *_mlp(nn.Dropout))


NETWORKS = [
    _mlp,
    _in_place,
    _dropped,
    Flat,
    Changed,
    Twice,
    WeightInView,
    PeekWithoutGradients,
    PartWithoutGradients,
    OwnBias,
    Renormed,
    Binary,
    ByRow,
]
# How many of the layers can take part.
ON_DATA = {_mlp: 1, _in_place: 1, Flat: 1, Twice: 1, WeightInView: 1, PartWithoutGradients: 0}


def _model(make, merge="auto", num_tasks=3):
    torch.manual_seed(0)
    model = lp.LowRank(make(), num_tasks, rank=2, scale=2.0, merge=merge).double()
    for delta in model.low_rank_deltas().values():
        nn.init.normal_(delta.B, std=0.3)
    return model


def _data(seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(SAMPLES, WIDTH, generator=generator, dtype=torch.float64)


def _step(model, x, b=4):
    torch.manual_seed(2)
    output = model(x, lp.dirichlet(3, b))
    output.square().sum().backward()
    return output.detach(), {name: p.grad for name, p in model.named_parameters()}


@pytest.fixture
def calls(monkeypatch):
    """How often the layer on the data was computed in its short way."""
    found = []
    short = input_layer._outputs

    def counted(*args):
        found.append(args[0].shape)
        return short(*args)

    monkeypatch.setattr(input_layer, "_outputs", counted)
    return found


@pytest.mark.parametrize("make", NETWORKS)
def test_outputs_and_gradients_are_those_of_merged_weights(make, calls):
    found = _step(_model(make), _data())
    assert len(calls) == ON_DATA.get(make, 0)
    torch.testing.assert_close(found, _step(_model(make, "product"), _data()))


def test_fewer_bits_within_the_network():
    found, expected = (_model(InHalf, merge).float() for merge in ("auto", "product"))
    x = _data().float()
    torch.testing.assert_close(_step(found, x), _step(expected, x), atol=1e-2, rtol=1e-2)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_derivatives_forward():
    direction, alphas = torch.ones(SAMPLES, WIDTH, dtype=torch.float64), lp.dirichlet(3, 4)
    with torch.autograd.forward_ad.dual_level():
        x = torch.autograd.forward_ad.make_dual(_data(), direction)
        found, expected = (
            torch.autograd.forward_ad.unpack_dual(_model(Flat, merge)(x, alphas)).tangent
            for merge in ("auto", "simple")
        )
        torch.testing.assert_close(found, expected)


def test_several_tensors_are_several_data():
    x = {"a": _data(1), "b": _data(2)}
    torch.testing.assert_close(_step(_model(Halves), x), _step(_model(Halves, "simple"), x))


def test_frozen_weights_get_no_gradient(calls):
    def step(merge):
        model = _model(_mlp, merge)
        model.freeze()
        return _step(model, _data())

    found = step("auto")
    assert calls
    assert found[1]["network.0.weight"] is None
    torch.testing.assert_close(found, step("simple"))


def test_without_gradients_hidden_layers_are_not_taken_for_data(calls):
    with torch.no_grad():
        alphas = lp.dirichlet(3, 5)
        found = _model(_mlp)(_data(), alphas)
        assert len(calls) == 1
        torch.testing.assert_close(found, _model(_mlp, "simple")(_data(), alphas))


def test_it_works_on_data_made_for_inference(calls):
    alphas = lp.dirichlet(3, 5)
    with torch.inference_mode():
        found = _model(_mlp)(_data(), alphas)
        assert len(calls) == 1
    torch.testing.assert_close(found.clone(), _model(_mlp, "simple")(_data(), alphas).detach())


def test_it_works_without_data():
    model = lp.LowRank(_mlp(), 3, rank=2).to("meta")
    output = model(torch.empty(7, WIDTH, device="meta"), lp.dirichlet(3, 4))
    assert output.shape == (4, 7, 3)


def test_data_with_a_gradient_get_it(calls):
    def gradient(merge):
        x = _data().requires_grad_()
        _step(_model(_mlp, merge), x)
        return x.grad

    found = gradient("auto")
    assert not calls
    torch.testing.assert_close(found, gradient("simple"))


@pytest.mark.parametrize("x", [_data()[0], _data()[:, None]], ids=["vector", "cube"])
def test_other_shapes_take_merged_weights(x, calls):
    found = _step(_model(_mlp), x)
    assert not calls
    torch.testing.assert_close(found, _step(_model(_mlp, "simple"), x))


def test_the_choice_counts_the_work(calls):
    """Three outputs, two preferences: the factors are wider than what they save."""
    _step(_model(Flat), _data(), b=2)
    assert not calls
    _step(_model(Flat), _data(), b=4)
    assert calls


def test_a_subset_of_the_preferences_can_be_used():
    model, other = _model(_mlp), _model(_mlp, "simple")
    for each in (model, other):
        torch.manual_seed(2)
        each(_data(), lp.dirichlet(3, 4))[2].square().sum().backward()
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad)


def test_tied_weights_are_merged_where_they_are_tied():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(WIDTH, 6)
            self.back = nn.Linear(6, WIDTH, bias=False)
            self.back.weight = self.words.weight

        def forward(self, x):
            return self.back(self.words(x))

    class TiedOtherWay(Tied):
        def __init__(self):
            super().__init__()
            self.back, self.words = nn.Linear(6, WIDTH, bias=False), nn.Embedding(WIDTH, 6)
            self.words.weight = self.back.weight

    x = torch.randint(WIDTH, (SAMPLES,))
    for make in (Tied, TiedOtherWay):
        torch.testing.assert_close(_step(_model(make), x), _step(_model(make, "simple"), x))


def test_the_network_is_as_before_afterwards():
    model = _model(_mlp)
    before = copy.deepcopy(model.state_dict())
    _step(model, _data())
    assert all(type(p) is nn.Parameter for p in model.parameters())
    torch.testing.assert_close(model.state_dict(), before)


def test_a_whole_fit_reaches_the_same_weights():
    tasks = [lp.Task(name, F.mse_loss, F.mse_loss, maximise=False, reference=9.0) for name in "abc"]
    batches = [(_data(i), list(_data(i + 9)[:, :3].T)) for i in range(3)]

    def trained(merge):
        model = _model(_mlp, merge)
        lp.fit(model, tasks, batches, epochs=2, freeze_epoch=1, seed=0, progress=False)
        return model.state_dict()

    torch.testing.assert_close(trained("auto"), trained("simple"))
