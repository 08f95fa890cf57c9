import copy
from importlib.metadata import version
from types import SimpleNamespace

import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

import lorpman as lp
from lorpman.lab.datasets.splits import batches
from lorpman.rules import IMTL, MGDA, AutoLambda, FeatureMGDA
from lorpman.training import placed_model
from lorpman.training.options import Placement
from lorpman.training.placed_model import PlacedModel
from small_training import exactly, fit_small, make_data, make_model


def _network():
    return lp.SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 1), nn.Linear(3, 1)])


def _fit(model, objective, fabric):
    """The history of a regression in the precision of ``fabric``."""
    dtype = torch.float64 if fabric.strategy.precision.precision == "64-true" else torch.float32
    x = torch.randn(16, 4, dtype=dtype)
    loader = [(x, [x[:, :1], x[:, 1:2]])] * 3
    return fit_small(model, loader, objective=objective, fabric=fabric, epochs=4)[1]


def _fabric(precision):
    return Fabric(accelerator="cpu", devices=1, precision=precision)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
@pytest.mark.parametrize("rule", [None, MGDA, FeatureMGDA, AutoLambda, IMTL])
def test_networks_run_in_the_precision_of_the_run(precision, rule):
    """Also with rules that take gradients themselves."""
    if precision == "64-true" and version("torch").startswith("2.8"):
        pytest.skip("torch 2.8 has no loss of double outputs and single targets")
    model = lp.LowRank(_network(), 2) if rule is None else lp.Single(_network(), 2)
    seen = []
    model.network.register_forward_hook(lambda module, args, output: seen.append(output))
    history = _fit(model, None if rule is None else rule(), _fabric(precision))
    assert history[-1].losses["left"] < history[0].losses["left"]
    dtype = torch.float64 if precision == "64-true" else torch.bfloat16
    # The last ones: what comes before the first step is tried in the model's own precision.
    assert {part.dtype for output in seen[-3:] for part in output} == {dtype}


@pytest.mark.parametrize("precision", ["bf16-mixed", "bf16-true"])
def test_a_front_is_scored_in_reduced_precision(precision):
    validation = batches(make_data(), 30)
    model, history = fit_small(fabric=_fabric(precision), validation=validation)
    assert history[-1].hypervolume > 0
    assert model.network.bottom[0].weight.isfinite().all()


def test_rules_that_take_gradients_refuse_scaled_losses(monkeypatch):
    """As in half precision, which no CPU has: a scaler on Fabric's own plugin stands for it."""
    fabric = _fabric("bf16-mixed")
    monkeypatch.setattr(fabric.strategy.precision, "scaler", torch.amp.GradScaler("cpu"))
    message = (
        "MGDA takes gradients itself, without the scaling of losses that 16-mixed needs; use the "
        "precision bf16-mixed or 32-true"
    )
    with pytest.raises(lp.UsageError, match=exactly(message)):
        _fit(lp.Single(_network(), 2), MGDA(), fabric)


def test_other_errors_of_a_rule_are_its_own():
    class Fails(lp.Rule):
        def backward(self, step):
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match=exactly("out of memory")):
        fit_small(objective=Fails())


@pytest.mark.filterwarnings("ignore")  # of the compiler itself
@pytest.mark.slow
def test_compiled_networks_train_alike_through_the_freeze_epoch():
    from torch._dynamo.utils import counters

    start = make_model()
    start.network.bottom[3].p = 0.0  # the compiler draws other random numbers
    counters.clear()
    _, plain = fit_small(copy.deepcopy(start), freeze_epoch=1, epochs=2)
    assert counters["stats"]["unique_graphs"] == 0
    _, compiled = fit_small(start, freeze_epoch=1, epochs=2, compiled=True)
    assert counters["stats"]["unique_graphs"] > 0
    for ours, expected in zip(compiled, plain, strict=True):
        assert ours.losses == pytest.approx(expected.losses, rel=1e-5)
    assert compiled[1].frozen


class SetsGradients(lp.Rule):
    """With or without a backward pass that the wrapper sees."""

    def __init__(self, seen):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.seen = seen

    def backward(self, step):
        if self.seen:
            step.backward(step.losses.sum())


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("processes", [1, 2])
def test_what_the_wrapper_does_not_see_is_averaged_by_hand(monkeypatch, seen, processes):
    """The model's gradients unless they were back-propagated, and the rule's own in any case."""
    model, rule, averaged = make_model(), SetsGradients(seen), []
    monkeypatch.setattr(
        placed_model, "average_gradients", lambda fabric, parameters: averaged.append(parameters)
    )
    optimizer = torch.optim.SGD([*model.parameters(), *rule.parameters()], lr=0.1)
    placed = PlacedModel(model, rule, optimizer, Placement())
    monkeypatch.setattr(Fabric, "world_size", property(lambda self: processes))
    loss = sum(p.square().sum() for p in model.parameters())
    step = SimpleNamespace(losses=loss, backward=placed.backward)
    for _ in range(2):  # no step knows of the one before
        placed.gradients(SimpleNamespace(losses=loss.clone(), backward=lambda loss: None))
        averaged.clear()
        monkeypatch.setattr(placed.fabric, "backward", lambda loss: None)
        placed.gradients(step)
        expected = [rule.weight] if seen else [*model.parameters(), rule.weight]
        wanted = [list(map(id, expected))] if processes == 2 else []
        assert [list(map(id, parameters)) for parameters in averaged] == wanted


def test_the_default_is_one_device():
    optimizer = torch.optim.SGD(make_model().parameters(), lr=0.1)
    placed = PlacedModel(make_model(), lp.Linear(), optimizer, Placement())
    assert placed.fabric.world_size == 1
    assert not placed.compiled


@pytest.mark.parametrize(
    "objective",
    [
        lp.Linear,
        lambda: lp.Linear() + 0.5 * lp.Orthogonality(),
        lambda: lp.Chebyshev() + 0.3 * lp.Cosine(),
        lambda: lp.Linear() + lp.MultiForward(),
    ],
)
def test_one_preference_after_the_other_trains_as_all_at_once(objective):
    """With batch norm and dropout: each preference meets the same statistics and random numbers."""

    def train(all_at_once):
        torch.manual_seed(0)
        bottom = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Dropout(0.2)
        )
        heads = [torch.nn.Linear(8, 1), torch.nn.Linear(8, 1)]
        model = lp.LowRank(lp.SharedBottom(bottom, heads), 2, rank=2).double()
        x = torch.randn(16, 4, dtype=torch.float64)
        tasks = [lp.Task(n, torch.nn.functional.mse_loss, lambda o, t: o.mean()) for n in "ab"]
        placement = lp.Placement(all_at_once=all_at_once)
        loader = [(x, [x[:, :1], x[:, 1:2]])] * 5
        options = {"objective": objective(), "placement": placement, "progress": False, "seed": 0}
        history = lp.fit(model, tasks, loader, epochs=2, **options)
        return model.state_dict(), history[-1].losses

    one_by_one, losses = train(all_at_once=False)
    together, expected = train(all_at_once=True)
    assert losses == pytest.approx(expected, rel=1e-9)
    for name, value in one_by_one.items():
        torch.testing.assert_close(value, together[name], rtol=1e-6, atol=1e-9)


def test_the_network_runs_backward_before_the_next_preference_runs_forward():
    """So the activations of one preference live at a time."""
    events = []

    class Watched(torch.nn.Linear):
        def forward(self, x):
            events.append("forward")
            output = super().forward(x)
            # The networks are also tried without gradients, before the first step.
            if output.requires_grad:
                output.register_hook(lambda gradient: events.append("backward"))
            return output

    def train(all_at_once):
        model = lp.LowRank(lp.SharedBottom(Watched(4, 3), [torch.nn.Linear(3, 1)] * 2), 2)
        tasks = [lp.Task(n, torch.nn.functional.mse_loss, lambda o, t: o.mean()) for n in "ab"]
        x = torch.randn(8, 4)
        placement = lp.Placement(all_at_once=all_at_once)
        options = {"window": 3, "placement": placement, "progress": False}
        lp.fit(model, tasks, [(x, [x[:, :1], x[:, :1]])] * 2, epochs=1, **options)
        # The first step, without what is tried before it.
        first = events.index("backward") - (1 if not all_at_once else 3)
        return events[first : first + 6]

    assert train(all_at_once=False) == ["forward", "backward"] * 3
    events.clear()
    assert train(all_at_once=True) == ["forward"] * 3 + ["backward"] * 3
