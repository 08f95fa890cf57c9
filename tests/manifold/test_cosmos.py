import copy

import pytest
import torch
from torch import nn

from lorpman import Cosmos, SharedBottom, UsageError
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
    "table": (lambda: mlp(6, 5), lambda: torch.randn(4, 6), 2),
    "image": (lenet, lambda: torch.randn(2, 1, 28, 28), 2),
    "resnet": (lambda: resnet18((1, 2, 5), 4, 32), lambda: torch.randn(2, 3, 32, 32), 3),
    "segnet": (lambda: segnet((3, 1), 2), lambda: torch.randn(2, 3, 32, 32), 2),
    "own images": (lambda: vgg16(2, 3, 4), lambda: [torch.randn(2, 3, 32, 32)] * 2, 2),
}


def _make(kind):
    network, x, m = NETWORKS[kind]
    return Cosmos(network(), m), x()


@pytest.mark.parametrize("kind", NETWORKS)
class TestAnyNetwork:
    def test_solution_equals_forward(self, kind):
        assert_solution_equals_forward(*_make(kind), 1e-5)

    def test_batch_of_preferences_is_a_loop(self, kind):
        assert_batch_is_loop(*_make(kind))

    def test_leaves_the_given_network_alone(self, kind):
        network, _, m = NETWORKS[kind]
        network = network()
        assert_untouched(network, lambda: randomise(Cosmos(network, m)))

    def test_outputs_depend_on_the_preference(self, kind):
        model, x = _make(kind)
        model.eval()
        first, *_, last = torch.eye(model.num_tasks)
        ours, theirs = model(x, first), model(x, last)
        assert not any(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("kind", ["table", "image"])
def test_every_parameter_gets_gradient(kind):
    model, x = _make(kind)
    # Away from the start, where the ReLUs of a tiny up-sampler may all be closed.
    with torch.no_grad():
        for parameter in model.upsampler.parameters():
            parameter.abs_()
    assert_all_trainable_get_gradient(model, x)


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: Cosmos(lenet(), 2), 28_158),
        (lambda: Cosmos(mlp(), 2), 121_604),
        (lambda: Cosmos(resnet18((1, 2, 5)), 3), 11_187_420),
        (lambda: Cosmos(vgg16(), 20), 15_018_568),
        (lambda: Cosmos(resnet18((2,) * 40), 40), 11_438_992),
    ],
)
def test_counts_of_the_paper(make, count):
    with torch.device("meta"):
        assert make().num_parameters() == count


def test_a_zero_upsampler_makes_the_output_independent_of_alpha():
    model, x = _make("image")
    for parameter in model.upsampler.parameters():
        nn.init.zeros_(parameter)
    # Its planes are zero, so what is left is the given network.
    network = lenet()
    network.load_state_dict(
        {
            name: value[:, :1] if name == "bottom.0.weight" else value
            for name, value in model.network.state_dict().items()
        }
    )
    for alpha in torch.eye(2):
        assert_same(model(x, alpha), network(x))


def test_given_weights_are_kept():
    network = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
    wide = Cosmos(network, 2).network[0]
    assert torch.equal(wide.weight[:, :3], network[0].weight)
    assert torch.equal(wide.bias, network[0].bias)
    assert wide.weight[:, 3:].abs().max() <= 5**-0.5


def test_upsampler_is_four_then_ten_wide():
    model = Cosmos(lenet(), 2)
    first, _, second, _ = model.upsampler
    plane = first(torch.zeros(1, 2, 1, 1))
    assert (plane.shape, second(plane).shape) == ((1, 2, 4, 4), (1, 2, 10, 10))


def test_the_solution_is_small_plain_and_copyable():
    for kind in ("table", "image"):
        model, x = _make(kind)
        solution = model.eval().solution(torch.tensor([0.3, 0.7]))
        twin = copy.deepcopy(solution)
        twin.load_state_dict(solution.state_dict())
        expected = model(x, torch.tensor([0.3, 0.7]))
        randomise(model)
        assert_same(twin(x), expected)
        assert_same(torch.export.export(solution, (x,)).module()(x), expected)


def test_concurrent_callers_do_not_disturb_one_another():
    assert_callers_do_not_disturb(*_make("image"))


def test_the_layer_can_be_named():
    class Backwards(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(4, 2), nn.Linear(3, 4)

        def forward(self, x):
            return self.last(self.first(x))

    model = Cosmos(Backwards(), 2, layer="first")
    assert model(torch.randn(5, 3), torch.tensor([0.5, 0.5])).shape == (5, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cosmos(nn.Embedding(3, 2), 2), "is a Embedding"),
        (lambda: Cosmos(nn.Conv1d(3, 2, 1), 2), "is a Conv1d"),
        (lambda: Cosmos(nn.Conv2d(4, 4, 1, groups=2), 2), "ungrouped"),
        (lambda: Cosmos(nn.Linear(3, 2), 2, layer="encoder"), "no such module"),
        (lambda: Cosmos(SharedBottom(nn.Linear(3, 2), [nn.Identity()]), 2), "has 1 heads"),
        (lambda: Cosmos(nn.utils.parametrizations.weight_norm(nn.Linear(3, 2)), 2), "plain Linear"),
        (lambda: Cosmos(nn.Linear(3, 2), 2)(torch.zeros(1, 1, 3), torch.ones(2) / 2), "rows"),
        (lambda: Cosmos(lenet(), 2)({"x": 1}, torch.ones(2) / 2), "found dict"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_a_solution_takes_one_preference():
    with pytest.raises(ValueError, match="one preference"):
        Cosmos(nn.Linear(3, 2), 2).solution(torch.eye(2))
