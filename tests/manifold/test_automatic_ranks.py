"""Ranks that the layers find themselves, within a budget of parameters."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman._files import read_json
from lorpman.errors import UsageError
from lorpman.lab.datasets.splits import Arrays, batches
from lorpman.lab.runs.directory import open_run
from lorpman.lab.runs.epoch_log import parameters_learned, read_epoch_log
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train
from lorpman.manifold.automatic_ranks import allocate, budget_at
from lorpman.training.state import TrainingState
from properties import assert_resumes_to_the_same_bits

TASKS = [lp.Task(name, F.mse_loss, F.mse_loss, maximise=False, reference=9.0) for name in "ab"]


def _network():
    torch.manual_seed(0)
    bottom = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
    return lp.SharedBottom(bottom, [nn.Linear(16, 1), nn.Linear(16, 1)])


def _loader():
    """Two tasks that contradict each other in the inputs' first layer."""
    x = torch.randn(200, 6, generator=torch.Generator().manual_seed(1))
    return batches(Arrays(x, [x[:, :1].clone(), -x[:, :1].clone()]), 50)


def _fit(model, epochs=6, **options):
    settings = {"seed": 0, "progress": False, **options}
    return lp.fit(model, TASKS, _loader(), epochs=epochs, **settings)


def _spent(model):
    return sum(d.B.numel() + d.A.numel() for d in model.low_rank_deltas().values())


def test_a_fit_ends_within_the_budget():
    model = lp.LowRank(_network(), 2, rank="auto", budget=500)
    assert _spent(model) > 500
    sizes = []
    _fit(model, on_epoch=lambda epoch: sizes.append(_spent(model)))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 2
    assert 400 < sizes[-1] <= 500
    assert model.num_parameters() == _spent(model) + sum(p.numel() for p in _network().parameters())


def test_the_budget_is_that_of_rank_8_unless_told():
    fixed, auto = lp.LowRank(_network(), 2, rank=8), lp.LowRank(_network(), 2, rank="auto")
    assert auto.budget == _spent(fixed)


def test_a_layer_that_matters_keeps_more():
    importance = {"a": torch.tensor([5.0, 4.0, 3.0]), "b": torch.tensor([5.0, 0.1, 0.1])}
    assert allocate(importance, {"a": 10, "b": 10}, 40) == {"a": 3, "b": 1}
    # Twice as dear: only what brings twice as much is worth it.
    assert allocate(importance, {"a": 60, "b": 1}, 122) == {"a": 1, "b": 3}


def test_without_a_measure_all_layers_lose_alike():
    nothing = {"a": torch.zeros(8), "b": torch.zeros(4)}
    assert allocate(nothing, {"a": 1, "b": 1}, 6) == {"a": 4, "b": 2}


def test_directions_that_matter_are_those_that_stay():
    model = lp.LowRank(nn.Linear(6, 6), 2, rank="auto", budget=2 * 12 * 2)
    (delta,) = model.low_rank_deltas().values()
    with torch.no_grad():
        delta.B.normal_()
    kept = {0: [1, 2], 1: [0, 3]}
    for task, directions in kept.items():
        delta.importance[task, directions] = 1.0
    B, A = delta.B.detach().clone(), delta.A.detach().clone()
    model.begin_epoch(5, 6)
    for task, directions in kept.items():
        assert torch.equal(delta.B[:, task], B[:, task, directions])
        assert torch.equal(delta.A[task], A[task, directions])
    assert not delta.importance.any()


@pytest.mark.parametrize("frozen", [False, True])
def test_importance_is_what_the_loss_would_change_to_first_order(frozen):
    model = lp.LowRank(nn.Linear(3, 3), 2, rank="auto", budget=12, scale=1.5)
    (delta,) = model.low_rank_deltas().values()
    with torch.no_grad():
        delta.B.normal_()
    if frozen:
        model.freeze()
    x, alphas = torch.randn(5, 3), torch.tensor([[0.3, 0.7], [0.1, 0.9]])
    model(x, alphas).square().sum().backward()
    model.after_backward()
    noted, step = delta.importance[1, 0].item(), 1e-3
    before = model(x, alphas).square().sum().item()
    with torch.no_grad():
        gone = step * delta.B[:, 1, 0]
        delta.B[:, 1, 0] -= gone
        if not frozen:
            model.network.weight += 1.5 / 2 * torch.outer(gone, delta.A[1, 0])
    change = model(x, alphas).square().sum().item() - before
    assert noted == pytest.approx(abs(change) / step, rel=0.05)


def test_a_frozen_network_finds_ranks_for_its_deltas():
    network = _network()
    network.bottom.requires_grad_(False)
    model = lp.LowRank(network, 2, rank="auto", budget=300)
    _fit(model, freeze_epoch=4)
    assert _spent(model) <= 300
    assert torch.equal(model.network.bottom[0].weight, network.bottom[0].weight)
    assert copy.deepcopy(model).ranks() == model.ranks()


def test_what_is_dropped_leaves_the_network_at_equal_weights_as_it_was():
    model = lp.LowRank(_network(), 2, rank="auto", budget=300, scale=2.0)
    with torch.no_grad():
        for delta in model.low_rank_deltas().values():
            delta.B.normal_()
    x, middle, end = torch.randn(4, 6), torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0])
    before = [model(x, alpha)[0] for alpha in (middle, end)]
    assert model.begin_epoch(5, 6)
    after = [model(x, alpha)[0] for alpha in (middle, end)]
    torch.testing.assert_close(after[0], before[0], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(after[1], before[1], atol=1e-3)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.Adafactor])
def test_what_the_optimiser_knows_follows_the_directions_that_stay(optimizer):
    """Moments of Adam are cut; Adafactor's sums over columns cannot be, and start anew."""
    model = lp.LowRank(_network(), 2, rank="auto", budget=300)
    training = TrainingState(model, optimizer=optimizer, seed=0)
    model(torch.randn(4, 6), torch.tensor([[0.3, 0.7]]))[0].sum().backward()
    training.optimizer.step()
    delta, *_ = model.low_rank_deltas().values()
    first = dict(training.optimizer.state[delta.B])
    delta.importance.copy_(torch.rand(delta.importance.shape))
    kept = delta.importance.sort(descending=True).indices
    training.epoch = 5
    training.begin_epoch(6, None, False)
    assert delta.rank < kept.shape[1]
    kept = kept[:, : delta.rank].sort().values
    state = training.optimizer.state.get(delta.B, {})
    if optimizer is torch.optim.Adafactor:
        assert not state
    else:
        expected = torch.stack([first["exp_avg"][:, i, kept[i]] for i in range(2)], 1)
        assert torch.equal(state["exp_avg"], expected)
        assert state["step"] == first["step"]
    training.optimizer.step()


def test_the_mean_is_the_network_as_it_was_after_a_cut():
    """The mean of the factors has lost a part by then, and that of the main weights lacks it."""
    model = lp.LowRank(_network(), 2, rank="auto", budget=300)
    with torch.no_grad():
        for delta in model.low_rank_deltas().values():
            delta.B.normal_()
    training = TrainingState(model, optimizer=torch.optim.Adam, seed=0, averaging=0.9)
    x, middle = torch.randn(4, 6), torch.tensor([0.5, 0.5])
    before = model(x, middle)[0]
    training.epoch, training.average.steps = 5, 1000
    training.begin_epoch(6, None, False)
    assert _spent(model) <= 300
    with training.as_it_will_be():
        torch.testing.assert_close(model(x, middle)[0], before, rtol=1e-4, atol=1e-5)
    # So it forgets this start as fast as it did the first one.
    assert training.average.steps == 0


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_any_optimiser_goes_on_after_a_cut(optimizer):
    model = lp.LowRank(_network(), 2, rank="auto", budget=300)
    first, *_, last = _fit(model, optimizer=lambda params: optimizer(params, lr=0.02))
    assert last.losses["a"] < first.losses["a"]
    assert _spent(model) <= 300


def test_one_epoch_keeps_the_budget_too():
    assert [budget_at(0, 1, 100), budget_at(1, 2, 100)] == [100, 100]
    model = lp.LowRank(_network(), 2, rank="auto", budget=500)
    _fit(model, epochs=1)
    assert _spent(model) <= 500


def test_solutions_have_the_trained_weights():
    model = lp.LowRank(_network(), 2, rank="auto", budget=300)
    _fit(model)
    x, alpha = torch.randn(4, 6), torch.tensor([0.2, 0.8])
    for theirs, ours in zip(model.solution(alpha)(x), model(x, alpha), strict=True):
        torch.testing.assert_close(theirs, ours)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_resuming_gives_the_same_bits(tmp_path, stop):
    def make():
        return lp.LowRank(_network(), 2, rank="auto", budget=300)

    # A rank that differed would be another shape.
    assert_resumes_to_the_same_bits(make, _fit, tmp_path / "checkpoint.safetensors", stop)


@pytest.mark.slow
def test_a_run_stores_and_shows_its_ranks(tmp_path):
    settings = {"rank": "auto", "budget": 1000, "epochs": 2, "watch_samples": 50}
    train(
        Spec.make("multidigits", "lorpman", 0, settings), tmp_path / "r", tmp_path, progress=False
    )
    spec, model = open_run(tmp_path / "r")
    assert spec.settings()["rank"] == "auto"
    assert _spent(model) <= 1000
    assert (tmp_path / "r" / "ranks.png").stat().st_size > 1000
    started = read_json(tmp_path / "r" / "run.json", "run")
    learned = parameters_learned(started, read_epoch_log(tmp_path / "r"))
    assert learned == model.num_parameters() < started["parameters"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": "auto", "budget": 3}, "of at least 108 parameters, one direction in"),
        ({"rank": "auto", "budget": 500.5}, "budget must be a whole number"),
        ({"rank": "auto", "budget": float("inf")}, "budget must be a whole number"),
        ({"rank": 4, "budget": 500}, "budget belongs to rank='auto'"),
        ({"rank": "some"}, "rank must be"),
    ],
)
def test_bad_ranks_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        lp.LowRank(_network(), 2, **options)


def test_every_epoch_notes_ranks_and_parameters():
    model = lp.LowRank(_network(), 2, rank="auto", budget=300)
    assert model.trace() == {"ranks": model.ranks(), "parameters": model.num_parameters()}
    assert lp.LowRank(_network(), 2).trace() == {}
