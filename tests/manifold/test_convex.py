import copy

import pytest
import torch
from torch import nn

from lorpman import Convex, LowRank, SharedBottom, UsageError
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.networks.mlp import mlp
from lorpman.lab.networks.resnet import resnet18
from lorpman.lab.networks.vgg import vgg16
from networks import NETWORKS, with_norm
from properties import (
    assert_all_trainable_get_gradient,
    assert_batch_is_loop,
    assert_callers_do_not_disturb,
    assert_permuting_tasks_permutes,
    assert_same,
    assert_solution_equals_forward,
    assert_theta_is_affine,
    assert_untouched,
    assert_vertex_is_member,
    randomise,
)


def _make(kind, num_tasks=3):
    network, x = NETWORKS[kind]
    model = Convex(network(), num_tasks)
    randomise(model)
    return model, x()


@pytest.mark.parametrize("kind", NETWORKS)
class TestAnyNetwork:
    def test_theta_is_affine(self, kind):
        assert_theta_is_affine(_make(kind)[0])

    def test_solution_equals_forward(self, kind):
        assert_solution_equals_forward(*_make(kind))

    def test_batch_of_preferences_is_a_loop(self, kind):
        assert_batch_is_loop(*_make(kind))

    def test_a_vertex_is_its_member(self, kind):
        model, _ = _make(kind)
        for index in range(3):
            assert_vertex_is_member(model, model.members(), index)

    def test_the_first_member_is_the_given_network(self, kind):
        make, x = NETWORKS[kind]
        network, x = make().eval(), x()
        model = Convex(network, 3).eval()
        assert_same(model(x, torch.tensor([1.0, 0.0, 0.0])), network(x), 1e-6)

    def test_leaves_the_given_network_alone(self, kind):
        network = NETWORKS[kind][0]()
        assert_untouched(network, lambda: randomise(Convex(network, 2)))

    def test_solution_is_a_plain_trainable_network_of_its_own_class(self, kind):
        network = NETWORKS[kind][0]()
        solution = Convex(network, 3).solution(torch.tensor([0.2, 0.3, 0.5]))
        assert type(solution) is type(network)
        shapes = {name: p.shape for name, p in network.named_parameters()}
        assert {name: p.shape for name, p in solution.named_parameters()} == shapes
        assert all(p.requires_grad for p in solution.parameters())

    def test_every_parameter_is_held_once_per_member(self, kind):
        model, _ = _make(kind)
        count = sum(p.numel() for p in NETWORKS[kind][0]().parameters())
        assert model.num_parameters() == 3 * count


@pytest.mark.parametrize("kind", [k for k in NETWORKS if k not in ("attention", "transformer")])
def test_every_trainable_parameter_gets_gradient(kind):
    assert_all_trainable_get_gradient(*_make(kind))


def test_permuting_tasks_permutes_outputs():
    model, x = _make("batch norm")
    model.eval()

    def permute(order):
        other = copy.deepcopy(model)
        for parameter in other.stacked.values():
            parameter.data = parameter.data[order]
        return other

    assert_permuting_tasks_permutes(permute, model, x)


def test_members_start_independently():
    model = Convex(lenet(3), 3)
    for values in model.members().values():
        assert not torch.equal(values[0], values[1])
        assert not torch.equal(values[1], values[2])
    # Independent weights are almost orthogonal; this is where the paper's figure begins.
    assert abs(model.similarity()["bottom.7"]) < 0.1


def test_a_parameter_without_a_reset_is_copied():
    class Free(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.full((2,), 3.0))

        def forward(self, x):
            return x * self.scale

    assert (Convex(Free(), 2).members()["scale"] == 3).all()


def test_similarity_is_the_cosine_of_whole_layers():
    model = Convex(nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1)), 3)
    expected = {}
    for layer in ("0", "2"):
        parts = [model.members()[f"{layer}.{kind}"].flatten(1) for kind in ("weight", "bias")]
        a, b, c = torch.cat(parts, 1)
        cosine = nn.functional.cosine_similarity
        expected[layer] = sum(cosine(*pair, dim=0) for pair in ((a, b), (a, c), (b, c))) / 3
    found = model.similarity()
    assert found.keys() == expected.keys()
    for layer, value in expected.items():
        assert found[layer] == pytest.approx(value.item(), abs=1e-6)
    assert model.trace() == {"similarity": found}


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: Convex(lenet(), 2), 54_900),
        (lambda: Convex(mlp(), 2), 242_184),
        (lambda: Convex(resnet18((1, 2, 5)), 3), 33_555_672),
        (lambda: Convex(vgg16(), 20, shared=["bottom.convs"]), 296_514_720),
        (lambda: Convex(resnet18((2,) * 40), 40), 453_310_080),
    ],
)
def test_counts_of_the_paper(make, count):
    with torch.device("meta"):
        assert make().num_parameters() == count


def test_what_stands_beside_the_shared_part_is_learned_once():
    model = Convex(vgg16(2, 3, width=4), 2, shared=["bottom.convs"])
    names = set(model.members())
    assert not any(name.startswith("bottom.norms") for name in names)
    assert {"bottom.convs.0.weight", "heads.1.bias"} <= names
    x = [torch.randn(2, 3, 32, 32), torch.randn(3, 3, 32, 32)]
    assert_solution_equals_forward(model, x, 1e-5)
    shared = {id(p) for p in model.shared_parameters(torch.ones(2) / 2)}
    assert shared == {id(model.members()[n]) for n in names if n.startswith("bottom.convs")}


def test_fixed_prefixes_are_neither_combined_nor_copied():
    network = SharedBottom(with_norm(nn.BatchNorm1d(4)), [nn.Linear(4, 2), nn.Linear(4, 2)])
    model = Convex(network, 2, fixed="bottom.1")
    assert "bottom.1.weight" not in model.members()
    before = sum(p.numel() for p in network.parameters())
    assert model.num_parameters() == 2 * (before - 8) + 8
    assert_all_trainable_get_gradient(model, torch.randn(5, 6))


@pytest.mark.parametrize("make", [Convex, LowRank])
def test_concurrent_callers_do_not_disturb_one_another(make):
    model = make(nn.Sequential(*(nn.Linear(20, 20) for _ in range(8))), 3)
    randomise(model)
    assert_callers_do_not_disturb(model, torch.randn(16, 20))


def test_copies_and_checkpoints():
    model, x = _make("lstm")
    other = Convex(NETWORKS["lstm"][0](), 3)
    other.load_state_dict(model.state_dict())
    alpha = torch.tensor([0.2, 0.3, 0.5])
    assert_same(other(x, alpha), model(x, alpha), 0)
    assert_same(copy.deepcopy(model)(x, alpha), model(x, alpha), 0)


def test_double_precision():
    model = Convex(nn.Linear(4, 3), 2).double()
    assert model(torch.randn(2, 4).double(), torch.tensor([0.5, 0.5])).dtype == torch.float64
    assert model.solution(torch.tensor([0.5, 0.5])).weight.dtype == torch.float64


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Convex(nn.Linear(2, 2), 2, fixed=["weight", "bias"]), "is fixed"),
        (lambda: Convex(nn.Linear(2, 2), 2, fixed="encoder"), "matches no parameter"),
        (lambda: Convex(nn.Linear(2, 2), 2).freeze(), "no main network to freeze"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()
