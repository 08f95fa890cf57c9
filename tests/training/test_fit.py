import inspect
import math
import time
from types import SimpleNamespace

import pytest
import torch
from lightning_fabric import Fabric
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from lorpman.lab.datasets.splits import batches
from lorpman.training import fit as fit_module
from small_training import (
    exactly,
    fit_small,
    make_data,
    make_loader,
    make_model,
    make_tasks,
    same_weights,
)


def test_training_is_algorithm_1():
    """Written by hand with nothing but torch and the manifold: the same bits.

    One preference after the other, which is the default, adds gradients in another order.
    """
    trained, history = fit_small(window=3, placement=lp.Placement(all_at_once=True))
    _, one_by_one = fit_small(window=3)
    for epoch, same in zip(history, one_by_one, strict=True):
        assert epoch.losses == pytest.approx(same.losses, rel=1e-5)
    model, tasks, loader = make_model(), make_tasks(), make_loader()
    torch.manual_seed(4)
    generator = torch.Generator().manual_seed(5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for _ in range(3):
        for x, y in loader:
            alphas = lp.dirichlet(2, 3, 1.0, generator)
            left, right = model(x, alphas)
            losses = torch.stack(
                [
                    torch.stack([tasks[0].loss(left[j], y[0]), tasks[1].loss(right[j], y[1])])
                    for j in range(3)
                ]
            )
            optimizer.zero_grad()
            lp.Linear()(alphas, losses, model).backward()
            optimizer.step()
    assert same_weights(trained, model)


def test_the_defaults_are_those_of_the_paper():
    options = inspect.signature(lp.fit).parameters
    assert options["window"].default == 4
    assert options["concentration"].default == 1.0
    assert options["averaging"].default == 0.0
    assert options["scheduler_interval"].default == "epoch"
    assert options["freeze_heads"].default is False
    assert options["progress"].default is True


class Recorded(lp.Linear):
    """Keeps every step that it is given."""

    def __init__(self):
        super().__init__()
        self.steps = []

    def backward(self, step):
        self.steps.append(step)
        super().backward(step)


def test_a_rule_is_told_everything_about_the_step():
    rule, model = Recorded(), make_model()
    made = []

    def sgd(parameters):
        made.append(torch.optim.SGD(parameters, lr=0.1))
        return made[0]

    fit_small(model, objective=rule, epochs=2, window=3, optimizer=sgd)
    assert [step.epoch for step in rule.steps] == [0, 0, 0, 1, 1, 1]
    assert {step.epochs for step in rule.steps} == {2}
    first = rule.steps[0]
    assert first.model is model
    assert first.optimizer is made[0]
    assert first.alphas.shape == first.losses.shape == (3, 2)
    assert len(first.batch) == 2
    assert not torch.equal(first.alphas, rule.steps[1].alphas)


def test_a_sampler_draws_the_preferences():
    asked, rule = [], Recorded()

    def sampler(num_tasks, count, generator):
        asked.append((num_tasks, count, generator.initial_seed()))
        return torch.tensor([[0.25, 0.75]])

    fit_small(objective=rule, sampler=sampler, epochs=1, window=2)
    assert asked == [(2, 2, 5)] * 3
    assert all(step.alphas.tolist() == [[0.25, 0.75]] for step in rule.steps)


def test_concentration_moves_preferences_to_the_middle():
    wide, narrow = Recorded(), Recorded()
    for rule, concentration in ((wide, 0.1), (narrow, 100.0)):
        fit_small(objective=rule, concentration=concentration)
    far, near = (
        torch.cat([step.alphas for step in rule.steps]).sub(0.5).abs().mean()
        for rule in (wide, narrow)
    )
    assert far > 0.3 > 0.1 > near


def test_a_record_of_every_epoch():
    told, tasks = [], make_tasks()
    began = time.perf_counter()
    _, history = fit_small(epochs=2, on_epoch=told.append)
    elapsed = time.perf_counter() - began
    assert told == history
    assert [record.number for record in history] == [1, 2]
    assert all(list(record.losses) == [task.name for task in tasks] for record in history)
    assert [record.hypervolume for record in history] == [None, None]
    assert [record.learning_rate for record in history] == [1e-3, 1e-3]
    assert all(record.seconds > 0 for record in history)
    assert sum(record.seconds for record in history) <= elapsed


def test_the_time_of_an_epoch_holds_its_validation():
    class Slow(list):
        def __iter__(self):
            time.sleep(0.3)
            return super().__iter__()

    _, history = fit_small(epochs=1, validation=Slow(make_loader()))
    assert history[0].seconds > 0.3


def test_only_the_first_process_tells_of_epochs(monkeypatch, capsys):
    monkeypatch.setattr(Fabric, "is_global_zero", property(lambda self: False))
    told = []
    fit_small(on_epoch=told.append, progress=True)
    assert told == []
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("first", "told"), [(True, 0.5), (False, 0.0)])
def test_the_first_process_scores_the_front_for_all(monkeypatch, first, told):
    front = SimpleNamespace(hypervolume=lambda: 0.5)
    monkeypatch.setattr(fit_module, "evaluate", lambda *args: front)
    validation = SimpleNamespace(loader=[], alphas=None)
    fabric = SimpleNamespace(is_global_zero=first, world_size=2, broadcast=lambda v: ("sent", v))
    state = SimpleNamespace(fabric=fabric, model=None)
    assert fit_module._hypervolume(state, [], validation) == ("sent", told)
    fabric.world_size = 1
    assert fit_module._hypervolume(state, [], validation) == told


def test_training_lowers_every_loss():
    _, history = fit_small(epochs=40, optimizer=lambda p: torch.optim.Adam(p, lr=1e-2))
    assert [record.number for record in history] == list(range(1, 41))
    for task in ("left", "right"):
        assert history[-1].losses[task] < 0.8 * history[0].losses[task]


def test_conflicting_tasks_are_traded_by_alpha():
    class Same(nn.Module):
        """One output for two tasks that want opposite values of it."""

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            return [self.layer(x)] * 2

    model, _ = fit_small(
        lp.LowRank(Same(), 2, rank=1), epochs=150, optimizer=lambda p: torch.optim.Adam(p, lr=0.02)
    )
    front = lp.evaluate(model, make_tasks(), batches(make_data(), 60), lp.grid(2, 3))
    # The best output is (alpha_1 - alpha_2) x, so the losses are 4 alpha_2^2 and 4 alpha_1^2.
    size = make_data().x[:, 0].square().mean()
    expected = size * torch.tensor([[4.0, 0.0], [1.0, 1.0], [0.0, 4.0]])
    torch.testing.assert_close(front.scores.float(), expected, atol=0.1, rtol=0.1)


def test_the_same_seed_repeats_bit_by_bit():
    first, second = fit_small()[0].state_dict(), fit_small()[0].state_dict()
    assert same_weights(first, second)
    assert not same_weights(first, fit_small(seed=6)[0].state_dict())


@pytest.mark.parametrize("alphas", [None, torch.eye(2)])
def test_validation_reports_hypervolume(alphas):
    model, history = fit_small(validation=batches(make_data(), 30), validation_alphas=alphas)
    front = lp.evaluate(model, make_tasks(), batches(make_data(), 60), alphas)
    assert history[-1].hypervolume == pytest.approx(float(front.hypervolume()), rel=1e-6)
    assert len({record.hypervolume for record in history}) == 3


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_the_run_before_its_step(bad):
    data = make_data()
    data.targets[1][:] = bad
    model = make_model()
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    with pytest.raises(
        lp.TrainingDiverged, match=r"task 'right' .* epoch 1, step 1, preference \("
    ):
        fit_small(model, batches(data, 20))
    assert same_weights(before, dict(model.named_parameters()))


def test_the_first_loss_that_is_not_finite_is_named():
    """The second step of the second epoch, at the second preference."""
    calls = []

    def loss(output, target):
        calls.append(None)
        value = (output - target).square().mean()
        return value * math.inf if len(calls) == 2 * (3 + 1) + 2 else value

    tasks = [lp.Task("left", *[make_tasks()[0].loss] * 2), lp.Task("right", loss, loss)]
    preferences = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    message = (
        "the loss of task 'right' became inf at epoch 2, step 2, preference (0.25, 0.75); check "
        "this task's data or lower the learning rate"
    )
    with pytest.raises(lp.TrainingDiverged, match=exactly(message)):
        lp.fit(
            make_model(),
            tasks,
            make_loader(),
            epochs=2,
            sampler=lambda *args: preferences,
            progress=False,
        )


def test_per_task_inputs_and_mappings():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared = nn.Linear(4, 1)

        def forward(self, x):
            return {"left": self.shared(x[0]), "right": self.shared(x[1])}

    x = [torch.randn(5, 4), torch.randn(3, 4)]
    loader = [(x, {"right": torch.zeros(3, 1), "left": torch.zeros(5, 1)})] * 2
    history = lp.fit(lp.LowRank(Network(), 2), make_tasks(), loader, epochs=2, progress=False)
    assert history[1].losses["left"] < history[0].losses["left"]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (nn.Linear(4, 3), "must hold one entry per task"),
        (lp.SharedBottom(nn.Linear(4, 3), [nn.Linear(3, 1)] * 2), None),
        (nn.Sequential(nn.Linear(4, 2), nn.Flatten(0)), "must hold one entry per task"),
    ],
)
def test_a_network_whose_output_does_not_match_the_tasks(network, message):
    model = lp.LowRank(network, 2)
    if message is None:
        fit_small(model, epochs=1)
    else:
        with pytest.raises(lp.UsageError, match=message):
            fit_small(model, epochs=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"freeze_epoch": -1}, "freeze_epoch must be a whole number of at least 0, got -1"),
        ({"epochs": 2.5}, "epochs must be a whole number of at least 1, got 2.5"),
        ({"epochs": True}, "epochs must be a whole number of at least 1, got True"),
        (
            {"resume": True},
            "resume needs a file to go on from; pass checkpoint='run.safetensors'",
        ),
        ({"averaging": 1.0}, "averaging must be at least 0 and below 1, got 1.0"),
    ],
)
def test_bad_settings_are_refused(options, message):
    with pytest.raises(lp.UsageError, match=exactly(message)):
        fit_small(**options)


def test_a_concentration_of_zero_is_refused():
    with pytest.raises(ValueError, match="concentration must be positive"):
        fit_small(concentration=0.0)


def test_the_least_settings_are_allowed():
    """One epoch of a loader that one pass uses up, with one preference in a step."""
    loader = iter(list(make_loader()))
    _, history = fit_small(loader=loader, epochs=1, window=1, freeze_epoch=0)
    assert len(history) == 1


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ([], "the loader is empty"),
        ([(torch.zeros(2, 4), torch.zeros(2, 1), torch.zeros(2, 1))], "found 3 parts"),
        ([torch.zeros(2, 4)], r"a batch must be \(x, y\)"),
        ([(torch.zeros(2, 4), [torch.zeros(2, 1)])], "one entry per task"),
    ],
)
def test_bad_loaders_are_refused(loader, message):
    with pytest.raises(lp.UsageError, match=message):
        lp.fit(make_model(), make_tasks(), loader, epochs=1, progress=False)


def test_tasks_must_fit_the_model():
    with pytest.raises(lp.UsageError, match="num_tasks=3, but 2 tasks"):
        lp.fit(lp.LowRank(nn.Linear(4, 3), 3), make_tasks(), make_loader(), epochs=1)


class Wrapped(dict):
    """A mapping that no one has told pytree about."""


def test_an_output_of_a_class_that_pytree_does_not_know_is_handed_on_whole():
    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            return Wrapped(left=self.layer(x), right=self.layer(x))

    model = lp.LowRank(Network(), 2)
    before = model.network.layer.weight.detach().clone()
    fit_small(model, epochs=1)
    assert not torch.equal(model.network.layer.weight, before)


def test_a_loader_that_one_pass_uses_up_is_refused():
    model = make_model()
    with pytest.raises(lp.UsageError, match="iterable more than once, found a generator"):
        lp.fit(model, make_tasks(), (batch for batch in make_loader()), epochs=2, progress=False)


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_training_without_gradients_is_refused(mode):
    model = make_model()
    message = f"training needs gradients, found torch.{mode}(); call fit outside of it"
    with pytest.raises(lp.UsageError, match=exactly(message)), getattr(torch, mode)():
        fit_small(model)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda o, t: F.mse_loss(o, t).item(), "must be a tensor, found a float; compute it with"),
        (lambda o, t: F.mse_loss(o, t).detach(), "has no gradient, so nothing would be learned"),
    ],
)
def test_a_loss_that_nothing_can_be_learned_from_is_refused(loss, message):
    tasks = [make_tasks()[0], lp.Task("right", loss, F.mse_loss)]
    with pytest.raises(lp.UsageError, match=f"the loss of task 'right' {message}"):
        lp.fit(make_model(), tasks, make_loader(), epochs=1, progress=False)
