import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lorpman import LowRank, SharedBottom, UsageError
from networks import NETWORKS, with_norm
from properties import (
    assert_all_trainable_get_gradient,
    assert_batch_is_loop,
    assert_permuting_tasks_permutes,
    assert_same,
    assert_solution_equals_forward,
    assert_theta_is_affine,
    assert_untouched,
    assert_vertex_uses_only_its_delta,
    randomise,
)


def _make(kind, num_tasks=3, rank=2, scale=1.5):
    network, x = NETWORKS[kind]
    model = LowRank(network(), num_tasks, rank=rank, scale=scale)
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

    def test_starts_as_the_given_network(self, kind):
        make, x = NETWORKS[kind]
        network, x = make().eval(), x()
        model = LowRank(network, 3).eval()
        assert_same(model(x, torch.tensor([0.1, 0.2, 0.7])), network(x), 1e-6)

    def test_leaves_the_given_network_alone(self, kind):
        network, x = NETWORKS[kind]
        network = network()

        def train():
            model = LowRank(network, 2)
            randomise(model)
            model(x(), torch.tensor([0.5, 0.5]))

        assert_untouched(network, train)

    def test_solution_is_of_the_networks_own_class(self, kind):
        model, _ = _make(kind)
        assert type(model.solution(torch.tensor([0.2, 0.3, 0.5]))) is type(model.network)


@pytest.mark.parametrize("kind", [k for k in NETWORKS if k not in ("attention", "transformer")])
def test_every_trainable_parameter_gets_gradient(kind):
    assert_all_trainable_get_gradient(*_make(kind))


@pytest.mark.parametrize("kind", ["conv2d", "batch norm", "lstm", "transformer"])
@pytest.mark.parametrize("task", [0, 2])
def test_a_vertex_uses_only_its_own_delta(kind, task):
    assert_vertex_uses_only_its_delta(*_make(kind), task)


def test_permuting_tasks_permutes_outputs():
    model, x = _make("batch norm")
    model.eval()

    def permute(order):
        other = copy.deepcopy(model)
        for delta in other.deltas.values():
            for name, parameter in delta.named_parameters():
                dim = 1 if name == "B" else 0
                parameter.data = parameter.data.index_select(dim, order)
        return other

    assert_permuting_tasks_permutes(permute, model, x)


@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    rank=st.integers(1, 12),
    m=st.integers(1, 5),
    scale=st.floats(-3, 3),
)
def test_theta_is_the_papers_formula(rows, columns, rank, m, scale):
    model = LowRank(nn.Linear(columns, rows), m, rank=rank, scale=scale)
    randomise(model)
    (delta,) = model.low_rank_deltas().values()
    assert delta.rank == min(rank, rows, columns)
    alpha = torch.softmax(torch.randn(m), 0)
    products = [delta.B[:, i] @ delta.A[i] for i in range(m)]
    expected = model.network.weight + scale * sum(
        a * product for a, product in zip(alpha, products, strict=True)
    )
    theta = model.theta(alpha)
    torch.testing.assert_close(theta["weight"], expected, atol=1e-5, rtol=1e-5)
    assert torch.equal(theta["bias"], model.network.bias)


def test_only_the_shared_bottom_is_adapted_by_default():
    network = SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 2), nn.Linear(3, 2)])
    assert set(LowRank(network, 2).low_rank_deltas()) == {"bottom.weight"}
    assert set(LowRank(network, 2, shared="heads.0").low_rank_deltas()) == {"heads.0.weight"}
    assert set(LowRank(network, 2, shared=["bottom", "heads"]).low_rank_deltas()) == {
        "bottom.weight",
        "heads.0.weight",
        "heads.1.weight",
    }


@pytest.mark.parametrize("heads", [False, True])
def test_freezing_stops_the_main_network(heads):
    network = SharedBottom(with_norm(nn.BatchNorm1d(4)), [nn.Linear(4, 2), nn.Linear(4, 2)])
    model = LowRank(network, 2)
    model.freeze(heads=heads)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert not any(name.startswith("network.bottom") for name in trained)
    assert any(name.startswith("network.heads") for name in trained) is not heads
    assert all(p.requires_grad for p in model.deltas.parameters())


def test_per_task_inputs():
    network = SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 2), nn.Linear(3, 5)])
    model = LowRank(network, 2)
    x = [torch.randn(7, 4), torch.randn(6, 4)]
    shapes = [tuple(out.shape) for out in model(x, torch.tensor([[0.5, 0.5], [1.0, 0.0]]))]
    assert shapes == [(2, 7, 2), (2, 6, 5)]
    assert_solution_equals_forward(model, x)


def test_checkpoint_round_trip():
    model, x = _make("batch norm")
    other = LowRank(NETWORKS["batch norm"][0](), 3, rank=2, scale=1.5)
    other.load_state_dict(model.state_dict())
    alpha = torch.tensor([0.2, 0.3, 0.5])
    assert_same(other.eval()(x, alpha), model.eval()(x, alpha), 0)


def test_double_precision():
    model = LowRank(nn.Linear(4, 3).double(), 2)
    assert model(torch.randn(2, 4).double(), torch.tensor([0.5, 0.5])).dtype == torch.float64


def _two_heads():
    return SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 2), nn.Linear(3, 2)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LowRank(nn.Linear(2, 2), 2, rank=0), "rank must be a whole number"),
        (lambda: LowRank(nn.Linear(2, 2), 2, rank=1.5), "rank must be a whole number"),
        (lambda: LowRank(nn.Linear(2, 2), 0), "num_tasks must be a whole number of at least 1"),
        (lambda: LowRank(nn.Linear(2, 2), 2, scale=float("nan")), "scale must be a finite number"),
        (lambda: LowRank(nn.Linear(2, 2), 2, shared="encoder"), "matches no parameter"),
        (lambda: LowRank(_two_heads(), 3), "has 2 heads, but num_tasks is 3"),
        (lambda: LowRank(nn.ReLU(), 2), "no parameters"),
        (lambda: LowRank(nn.LazyLinear(2), 2), "lazy parameters"),
        (lambda: LowRank("network", 2), "must be an nn.Module"),
        (lambda: LowRank(nn.PReLU(), 2), "nothing to adapt"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


@pytest.mark.parametrize("alpha", [[0.5, 0.6], [-0.5, 1.5], [1.0], [float("nan"), 1.0]])
def test_bad_preferences_are_refused_everywhere(alpha):
    model = LowRank(nn.Linear(4, 3), 2)
    x = torch.randn(2, 4)
    for use in (lambda a: model(x, a), model.theta, model.solution):
        with pytest.raises(ValueError, match="alpha must"):
            use(torch.tensor(alpha))


def test_sparse_embeddings_are_refused_and_any_whole_rank_accepted():
    import numpy as np

    with pytest.raises(UsageError, match="sparse=False"):
        LowRank(nn.Embedding(5, 4, sparse=True), 2)
    (delta,) = LowRank(nn.Linear(5, 4), 2, rank=np.int64(3)).low_rank_deltas().values()
    assert delta.rank == 3
