"""Networks that stay as they came: used at a preference, by threads, and trained."""

import copy
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import lorpman as lp
from networks import NETWORKS
from networks import frozen_front as _frozen


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
