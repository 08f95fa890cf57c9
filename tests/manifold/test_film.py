import copy

import pytest
import torch
from torch import nn

from lorpman import Film, UsageError
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.networks.mlp import mlp
from lorpman.lab.networks.resnet import resnet18
from lorpman.lab.networks.segnet import segnet
from lorpman.lab.networks.vgg import vgg16
from properties import (
    assert_all_trainable_get_gradient,
    assert_batch_is_loop,
    assert_callers_do_not_disturb,
    assert_same,
    assert_solution_equals_forward,
    assert_untouched,
    randomise,
)

NETWORKS = {
    "table": (lambda: mlp(6, 5), lambda: torch.randn(4, 6), 2, ["bottom.1"]),
    "image": (lenet, lambda: torch.randn(2, 1, 28, 28), 2, [f"bottom.{i}" for i in (2, 5, 8)]),
    "resnet": (
        lambda: resnet18((1, 2, 5), 4, 32),
        lambda: torch.randn(2, 3, 32, 32),
        3,
        [f"bottom.stage{i}" for i in (1, 2, 3, 4)],
    ),
    "segnet": (
        lambda: segnet((3, 1), 2),
        lambda: torch.randn(2, 3, 32, 32),
        2,
        [f"bottom.{half}.{i}" for half in ("encoder", "decoder") for i in range(5)],
    ),
    "own images": (
        lambda: vgg16(2, 3, 4),
        lambda: [torch.randn(3, 3, 32, 32)] * 2,
        2,
        [*(f"bottom.pools.{i}" for i in range(4)), "bottom.average"],
    ),
}


def _make(kind, moved=True):
    network, x, m, _ = NETWORKS[kind]
    model = Film(network(), m)
    if moved:
        randomise(model)
    return model, x()


@pytest.mark.parametrize("kind", NETWORKS)
class TestAnyNetwork:
    def test_solution_equals_forward(self, kind):
        assert_solution_equals_forward(*_make(kind), 1e-5)

    def test_batch_of_preferences_is_a_loop(self, kind):
        assert_batch_is_loop(*_make(kind))

    def test_starts_as_the_unconditioned_network(self, kind):
        network, x, m, _ = NETWORKS[kind]
        network, x = network().eval(), x()
        model = Film(network, m).eval()
        for alpha in (*torch.eye(m), torch.full((m,), 1 / m)):
            assert_same(model(x, alpha), network(x), 1e-6)

    def test_leaves_the_given_network_alone(self, kind):
        network, _, m, _ = NETWORKS[kind]
        network = network()
        assert_untouched(network, lambda: randomise(Film(network, m)))

    def test_stages_of_our_networks(self, kind):
        model, _ = _make(kind)
        assert [key.replace("/", ".") for key in model.modulations] == NETWORKS[kind][3]


@pytest.mark.parametrize("kind", ["table", "image", "resnet"])
def test_every_parameter_gets_gradient(kind):
    assert_all_trainable_get_gradient(*_make(kind))


def test_celeba_has_the_published_size():
    with torch.device("meta"):
        assert Film(resnet18((2,) * 40, dropout=0.5), 40).num_parameters() == 11_411_472


def test_features_are_scaled_and_shifted():
    network = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    model = Film(network, 2)
    linear = model.modulations["1"]
    randomise(model)
    x, alpha = torch.randn(4, 3), torch.tensor([0.3, 0.7])
    first, last = model.network[0], model.network[2]
    gamma, beta = (linear.weight @ alpha + linear.bias).chunk(2)
    expected = last((1 + gamma) * first(x).relu() + beta)
    torch.testing.assert_close(model(x, alpha), expected)


def test_stages_can_be_named():
    network = nn.Sequential(nn.Conv1d(3, 4, 1), nn.BatchNorm1d(4), nn.Flatten())
    assert list(Film(network, 2, ["1"]).modulations) == ["1"]
    wide = Film(network, 2, {"2": 20})
    assert wide(torch.randn(6, 3, 5), torch.tensor([0.5, 0.5])).shape == (6, 20)


def test_concurrent_callers_do_not_disturb_one_another():
    assert_callers_do_not_disturb(*_make("image"))


def test_the_solution_is_copyable_and_exportable():
    model, x = _make("resnet")
    alpha = torch.tensor([0.2, 0.3, 0.5])
    solution = model.eval().solution(alpha)
    expected = model(x, alpha)
    twin = copy.deepcopy(solution)
    randomise(model)
    assert_same(twin(x), expected)
    assert_same(torch.export.export(solution, (x,)).module()(x), expected, 1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Film(nn.Linear(3, 2), 2), "found no stage"),
        (lambda: Film(nn.Sequential(nn.Linear(3, 2)), 2, ["1"]), "no module inside"),
        (lambda: Film(nn.Sequential(nn.ReLU(), nn.Linear(3, 2)), 2), "cannot tell the channels"),
        (
            lambda: Film(nn.Sequential(nn.Linear(3, 2)), 2, {"0": 5})(
                torch.zeros(1, 3), torch.ones(2) / 2
            ),
            "FiLM modulates features",
        ),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()
