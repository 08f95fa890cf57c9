"""Networks that stay as they came: used at a preference, by threads, and trained."""

import copy
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import lorpman as lp
from networks import NETWORKS, Coded
from networks import frozen_front as _frozen

ALPHAS = torch.tensor([[0.2, 0.8], [0.7, 0.3]])


def test_the_network_inside_the_context_is_of_its_own_class_and_has_its_weights():
    network = NETWORKS["tied"][0]()
    model = _frozen(network)
    with model.at([0.3, 0.7]) as found:
        theta = model.theta(torch.tensor([0.3, 0.7]))
        assert type(found) is type(network)
        assert found.embedding.weight.shape == (11, 6)
        torch.testing.assert_close(found.embedding.weight, theta["embedding.weight"])
        for name, value in found.state_dict().items():
            expected = theta[name.replace("output", "embedding")]
            torch.testing.assert_close(value, expected.detach())


@pytest.mark.parametrize("frozen", [False, True])
def test_threads_have_networks_of_their_own(frozen):
    model = lp.LowRank(nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5)), 2, frozen=frozen)
    for delta in model.low_rank_deltas().values():
        nn.init.normal_(delta.B)
    x, alphas = torch.randn(3, 5), lp.grid(2, 4)
    alone = [model.solution(alpha)(x) for alpha in alphas]

    def work(j):
        for _ in range(20):
            with torch.no_grad(), model.at(alphas[j]) as network:
                if not torch.allclose(network(x), alone[j], atol=1e-5):
                    return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_the_base_is_neither_copied_nor_changed():
    network = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6))
    model = _frozen(network)
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {"deltas.0/weight.A", "deltas.0/weight.B"}
    assert model.network[0].weight.data_ptr() == network[0].weight.data_ptr()
    assert all(p.requires_grad for p in network.parameters())
    assert all(p.requires_grad for p in model.solution([0.5, 0.5]).parameters())


def test_a_step_of_training_moves_the_factors_alone():
    network = lp.SharedBottom(nn.Linear(4, 4), [nn.Linear(4, 1), nn.Linear(4, 1)])
    model = lp.LowRank(network, 2, frozen=True)
    before = copy.deepcopy(model.state_dict())
    loss = nn.functional.mse_loss
    tasks = [lp.Task(name, loss, loss, maximise=False, reference=9.0) for name in ("a", "b")]
    with warnings.catch_warnings():
        lp.fit(
            model, tasks, [(torch.randn(8, 4), torch.randn(8, 2, 1))] * 3, epochs=1, progress=False
        )
    moved = {n for n, value in model.state_dict().items() if not torch.equal(value, before[n])}
    heads = {f"network.heads.{i}.{name}" for i in (0, 1) for name in ("weight", "bias")}
    assert moved == heads | {"deltas.bottom/weight.A", "deltas.bottom/weight.B"}


def test_a_quantised_base_stays_as_it_is():
    network, x = nn.Sequential(Coded(nn.Linear(6, 4))), torch.randn(3, 6)
    model = _frozen(network)
    (delta,) = model.low_rank_deltas().values()
    change = 1.5 * torch.tensordot(ALPHAS[0], delta.dense(), 1)
    expected = network(x) + x @ change.T
    torch.testing.assert_close(model(x, ALPHAS[0]), expected)
    model(x, ALPHAS).sum().backward()
    assert delta.A.grad.abs().sum() > 0
    with pytest.raises(lp.UsageError, match=r"kept as torch.int8 \[24\] cannot be merged"):
        model.solution(ALPHAS[0])


def _mse_tasks():
    options = {"maximise": False, "reference": 99.0}
    return [lp.Task(name, F.mse_loss, F.mse_loss, **options) for name in ("a", "b")]


class _LikeTheBase(TorchDispatchMode):
    """Notes every new tensor that has the shape of a weight."""

    def __init__(self, weights):
        super().__init__()
        self.shapes = {tuple(p.shape) for p in weights}
        self.places = {p.untyped_storage().data_ptr() for p in weights}
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        alike = isinstance(made, torch.Tensor) and tuple(made.shape) in self.shapes
        if alike and made.untyped_storage().data_ptr() not in self.places:
            self.found.append((str(function), tuple(made.shape)))
        return made


class _Pair(nn.Module):
    """Two numbers, from layers of every kind that can use factors on activations.

    No activation and no factor has the shape of a weight.
    """

    def __init__(self, coded):
        super().__init__()
        self.words, self.wide = nn.Embedding(11, 5), nn.Conv1d(5, 7, 1)
        hidden = nn.Linear(7, 7)
        self.hidden = Coded(hidden) if coded else hidden
        self.output = nn.Linear(7, 2)

    def forward(self, words):
        x = self.wide(self.words(words).transpose(1, 2)).mean(2)
        return self.output(self.hidden(x)).split(1, 1)


@pytest.mark.parametrize("kind", ["shared", "coded"])
def test_no_tensor_of_the_base_is_copied_or_converted(kind):
    """Trained, scored, used: all over tensors that lie where other processes read them."""
    network = _Pair(coded=kind == "coded").requires_grad_(False)
    network.share_memory()
    before = {n: (p.data_ptr(), p.dtype, p.clone()) for n, p in network.named_parameters()}
    model = lp.LowRank(network, 2, rank=2, frozen=True)
    loader = [({"words": torch.randint(11, (8, 6))}, torch.randn(8, 2, 1))]
    # Codes are none: they become a weight in the forward of their own layer.
    weights = [p for p in network.parameters() if p.ndim > 1]
    with _LikeTheBase(weights) as made:
        lp.fit(model, _mse_tasks(), loader * 2, epochs=1, window=2, progress=False)
        lp.evaluate(model, _mse_tasks(), loader)
        with model.at(ALPHAS.repeat(4, 1)) as one_pass:
            one_pass(**loader[0][0])
    assert made.found == []
    for name, p in model.network.named_parameters():
        place, dtype, value = before[name]
        assert (p.data_ptr(), p.dtype, p.is_shared()) == (place, dtype, True)
        assert torch.equal(p, value)
