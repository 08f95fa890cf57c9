import copy

import pytest
import torch
from torch import nn

from lorpman import ChunkedHyper, Hyper, UsageError
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.networks.mlp import mlp
from lorpman.lab.networks.resnet import resnet18
from lorpman.lab.networks.vgg import vgg16
from lorpman.manifold.hypernetwork import free_memory
from networks import NETWORKS, with_norm
from properties import (
    assert_all_trainable_get_gradient,
    assert_batch_is_loop,
    assert_same,
    assert_solution_equals_forward,
    assert_untouched,
    randomise,
)

MAKERS = {
    "hyper": lambda network, m: Hyper(network, m, hidden=5),
    "chunked": lambda network, m: ChunkedHyper(network, m, hidden=6, matrices=2, block=7),
}
ALPHA = torch.tensor([0.2, 0.3, 0.5])


def _make(maker, kind):
    network, x = NETWORKS[kind]
    model = MAKERS[maker](network(), 3)
    randomise(model)
    return model, x()


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("kind", NETWORKS)
class TestAnyNetwork:
    def test_solution_equals_forward(self, maker, kind):
        assert_solution_equals_forward(*_make(maker, kind))

    def test_batch_of_preferences_is_a_loop(self, maker, kind):
        assert_batch_is_loop(*_make(maker, kind))

    def test_solution_is_a_plain_trainable_network_of_its_own_class(self, maker, kind):
        network = NETWORKS[kind][0]()
        solution = MAKERS[maker](network, 3).solution(ALPHA)
        assert type(solution) is type(network)
        shapes = {name: p.shape for name, p in network.named_parameters()}
        assert {name: p.shape for name, p in solution.named_parameters()} == shapes
        assert all(p.requires_grad for p in solution.parameters())


@pytest.mark.parametrize("maker", MAKERS)
def test_leaves_the_given_network_alone(maker):
    network = with_norm(nn.BatchNorm1d(4))
    assert_untouched(network, lambda: randomise(MAKERS[maker](network, 3)))


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("kind", ["linear", "conv2d", "tied", "layer norm"])
def test_every_parameter_gets_gradient(maker, kind):
    assert_all_trainable_get_gradient(*_make(maker, kind))


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: Hyper(lenet(), 2), 2_792_950),
        (lambda: Hyper(mlp(), 2), 12_250_792),
        (lambda: ChunkedHyper(resnet18((2,) * 40), 40), 11_037_836),
        (lambda: ChunkedHyper(resnet18((2,) * 40), 40, hidden=500), 55_557_436),
        (lambda: ChunkedHyper(vgg16(), 20), 11_039_308),
    ],
)
def test_counts(make, count):
    with torch.device("meta"):
        assert make().num_parameters() == count


def test_a_unit_vector_of_the_ray_network_picks_a_column_of_every_map():
    model = Hyper(lenet(), 2)
    last = model.ray[-1]
    nn.init.zeros_(last.weight)
    with torch.no_grad():
        last.bias.copy_(torch.eye(100)[0])
    theta = model.theta(torch.tensor([0.3, 0.7]))
    for name, value in theta.items():
        linear = model.maps[name.replace(".", "/")]
        torch.testing.assert_close(value.flatten(), linear.weight[:, 0] + linear.bias)


def test_the_ray_network_has_three_layers_and_no_last_activation():
    kinds = [type(module).__name__ for module in Hyper(nn.Linear(2, 2), 2).ray]
    assert kinds == ["Linear", "ReLU", "Linear", "ReLU", "Linear"]


def test_chunks_are_put_together_and_cut():
    model = ChunkedHyper(nn.Linear(6, 4), 2, hidden=6, matrices=2, block=5)
    assert model.chunks.shape == (3, 64)
    alpha = torch.tensor([0.3, 0.7])
    ray = alpha @ model.preference
    values = []
    for chunk in model.chunks:
        features = model.mlp(torch.cat([ray, chunk]))
        values += [matrix @ features for matrix in model.blocks]
    flat = torch.cat(values)
    theta = model.theta(alpha)
    expected = torch.cat([theta["weight"].flatten(), theta["bias"]])
    torch.testing.assert_close(flat[:28], expected)


def test_celeba_needs_104_chunks():
    with torch.device("meta"):
        assert len(ChunkedHyper(resnet18((2,) * 40), 40).chunks) == 104


def test_dropout_drops_generated_weights_while_training_only():
    model = Hyper(nn.Linear(20, 20, bias=False), 3, hidden=5, dropout=0.5)
    x = torch.eye(20)
    dropped = (model(x, ALPHA) == 0).float().mean()
    assert 0.3 < dropped < 0.7
    assert_same(model.solution(ALPHA)(x), model.eval()(x, ALPHA))
    assert (model(x, ALPHA) != 0).all()


def test_batch_statistics_are_used_when_predicting_too():
    model = ChunkedHyper(
        with_norm(nn.BatchNorm1d(4, affine=False)), 2, hidden=6, matrices=1, batch_statistics=True
    )
    out = model.eval()(torch.randn(50, 6) + 3, torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(out.mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    assert_solution_equals_forward(model, torch.randn(50, 6))


def test_checkpoints_and_copies():
    for maker in MAKERS:
        model, x = _make(maker, "batch norm")
        other = MAKERS[maker](NETWORKS["batch norm"][0](), 3)
        other.load_state_dict(model.state_dict())
        assert_same(other.eval()(x, ALPHA), model.eval()(x, ALPHA), 0)
        assert_same(copy.deepcopy(model)(x, ALPHA), model(x, ALPHA), 0)


def test_what_does_not_fit_is_refused_before_it_is_allocated():
    network = lenet()
    with pytest.raises(UsageError, match=r"2,792,950 of its own: 10\.7 MiB, and 42\.6 MiB to"):
        Hyper(network, 2, memory=40 * 2**20)
    with pytest.raises(UsageError, match="30,000 parameters has 3,050,500"):
        Hyper(nn.Linear(30_000, 1, bias=False), 2, hidden=100, memory=2**20)
    with pytest.raises(UsageError, match="are free"):
        ChunkedHyper(network, 2, memory=2**20)
    # Some 40 TB: if they were allocated first, the test would not end well.
    huge = nn.Linear(1, 1, bias=False)
    with pytest.raises(UsageError, match="GiB"):
        Hyper(huge, 2, hidden=2_000_000)


def test_free_memory_is_known_here():
    free = free_memory(torch.device("cpu"))
    assert free is None or free > 2**20
    assert free_memory(torch.device("meta")) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Hyper(nn.Linear(2, 2), 2, hidden=0), "hidden must be a whole number"),
        (lambda: Hyper(nn.Linear(2, 2), 2, dropout=1.0), "dropout must be"),
        (lambda: ChunkedHyper(nn.Linear(2, 2), 2, matrices=0), "matrices must be"),
        (lambda: ChunkedHyper(nn.Linear(2, 2), 2, block=0.5), "block must be"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()
