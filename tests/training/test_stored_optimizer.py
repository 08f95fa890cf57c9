"""States of optimisers and schedules: those of a training go on, forged ones are one line."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler

from lorpman import UsageError
from lorpman.training.stored_optimizer import load_optimizer, load_scheduler

OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, fused=True),
    "amsgrad": lambda p: torch.optim.AdamW(p, amsgrad=True),
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "adagrad": lambda p: torch.optim.Adagrad(p),
    "adafactor": lambda p: torch.optim.Adafactor(p),
    "rmsprop": lambda p: torch.optim.RMSprop(p, momentum=0.5, centered=True),
    "rprop": lambda p: torch.optim.Rprop(p),
    "tensor": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.25)),
}
SCHEDULERS = {
    "cosine": lambda o: lr_scheduler.CosineAnnealingLR(o, 4),
    "steps": lambda o: lr_scheduler.StepLR(o, 2),
    "milestones": lambda o: lr_scheduler.MultiStepLR(o, [1, 3]),
    "one cycle": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=4),
    "plateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0),
    "function": lambda o: lr_scheduler.LambdaLR(o, lambda epoch: 0.5**epoch),
    "sequence": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o), lr_scheduler.ExponentialLR(o, 0.9)], [2]
    ),
}


def make(name):
    torch.manual_seed(0)
    network = nn.Linear(3, 2)
    return network, OPTIMIZERS[name](network.parameters())


def step(network, optimizer):
    optimizer.zero_grad()
    network(torch.ones(4, 3)).square().sum().backward()
    optimizer.step()


def after_steps(name, count=2):
    network, optimizer = make(name)
    for _ in range(count):
        step(network, optimizer)
    return network, optimizer


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loaded_optimiser_goes_on_in_the_same_bits(name):
    network, optimizer = after_steps(name)
    other, loaded = make(name)
    other.load_state_dict(network.state_dict())
    load_optimizer(loaded, copy.deepcopy(optimizer.state_dict()))
    step(network, optimizer)
    step(other, loaded)
    for one, two in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


# A sequence of schedules does so itself, up to torch 2.8.
@pytest.mark.filterwarnings("ignore:The epoch parameter in")
@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("kind", ["adam", "tensor"])
@pytest.mark.parametrize("moves", [1, 3])
def test_a_loaded_schedule_goes_on(name, kind, moves):
    def move(scheduler):
        scheduler.optimizer.step()
        scheduler.step(*[1.0] if name == "plateau" else [])
        return float(scheduler.optimizer.param_groups[0]["lr"])

    _, optimizer = after_steps(kind)
    scheduler = SCHEDULERS[name](optimizer)
    for _ in range(moves):
        move(scheduler)
    _, other = make(kind)
    loaded = SCHEDULERS[name](other)
    load_optimizer(other, copy.deepcopy(optimizer.state_dict()))
    stored = scheduler.state_dict()
    load_scheduler(loaded, stored)
    rates = [float(o.param_groups[0]["lr"]) for o in (optimizer, other)]
    assert rates[0] == rates[1]
    if not (name == "one cycle" and moves == 3):  # which is at its end
        assert move(loaded) == move(scheduler)


def forged(name, change):
    _, optimizer = after_steps(name)
    stored = optimizer.state_dict()
    change(stored)
    return make(name)[1], stored


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s["state"][0].update(exp_avg=torch.zeros(7)), "floats .7., expected floats .2,"),
        (lambda s: s["state"][0].update(exp_avg_sq=torch.zeros(())), "has 'exp_avg_sq' as floats"),
        (lambda s: s["state"][1].update(exp_avg="x"), "'exp_avg' as str, expected floats"),
        (lambda s: s["state"][1].pop("exp_avg"), "lacks 'exp_avg' of a parameter"),
        (lambda s: s["state"][0].update(step=torch.tensor(-1.0)), "has done -1 steps"),
        (lambda s: s["state"][0].update(step=torch.tensor(math.nan)), "has done nan steps"),
        (lambda s: s["state"][0].update(step=torch.ones(2)), "has 'step' as floats .2., expected"),
        (lambda s: s["state"].update({7: s["state"][0]}), "none of its own"),
        (lambda s: s["param_groups"][0].update(params=[0, 0]), "none of its own"),
        (lambda s: s["param_groups"][0].update(amsgrad=True), "lacks 'max_exp_avg_sq'"),
        (lambda s: s["param_groups"][0].update(betas=3), "cannot step: TypeError"),
        (lambda s: s["param_groups"][0].update(lr="fast"), "cannot step: "),
        (lambda s: s["param_groups"][0].pop("lr"), "cannot step: KeyError"),
    ],
)
def test_an_optimiser_that_could_not_step_is_refused(change, said):
    with pytest.raises(UsageError, match=said):
        load_optimizer(*forged("adam", change))


def test_what_was_tried_leaves_no_trace():
    network, optimizer = after_steps("momentum")
    before = copy.deepcopy((network.state_dict(), optimizer.state_dict()))
    load_optimizer(optimizer, copy.deepcopy(before[1]))
    for value, kept in zip(network.state_dict().values(), before[0].values(), strict=True):
        assert torch.equal(value, kept)
    states = [each["state"].values() for each in (optimizer.state_dict(), before[1])]
    for state, kept in zip(*states, strict=True):
        assert torch.equal(state["momentum_buffer"], kept["momentum_buffer"])
    assert optimizer.state_dict()["param_groups"] == before[1]["param_groups"]


class Together(torch.optim.SGD):
    """An optimiser of somebody's own, which wants all parameters at once."""

    def step(self, closure=None):
        assert sum(len(group["params"]) for group in self.param_groups) == 2
        return super().step(closure)


def test_an_optimiser_that_cannot_be_tried_is_trusted():
    network = nn.Linear(3, 2)
    optimizer = Together(network.parameters(), 0.1, momentum=0.9)
    step(network, optimizer)
    again = Together(network.parameters(), 0.1, momentum=0.9)
    load_optimizer(again, optimizer.state_dict())
    step(network, again)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("cosine", {"T_max": "x"}, "cannot move: TypeError"),
        ("cosine", {"T_max": 0}, "cannot move: ZeroDivisionError"),
        ("cosine", {"step": 3}, "cannot move: TypeError"),
        ("steps", {"gamma": math.nan, "last_epoch": 1}, "leads to the learning rates .nan."),
        ("plateau", {"num_bad_epochs": []}, "cannot move: TypeError"),
    ],
)
def test_a_schedule_that_could_not_move_is_refused(name, change, said):
    _, optimizer = after_steps("adam")
    scheduler = SCHEDULERS[name](optimizer)
    stored = {**scheduler.state_dict(), **change}
    with pytest.raises(UsageError, match=said):
        load_scheduler(SCHEDULERS[name](make("adam")[1]), stored)
