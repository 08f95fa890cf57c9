import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.manifold.base import Cut
from lorpman.training.optimizers import cut_state, drop_frozen, make_optimizer, make_scheduler
from small_training import (
    LooksAtOtherData,
    exactly,
    fit_small,
    make_loader,
    make_model,
    make_network,
)

StepLR = torch.optim.lr_scheduler.StepLR
Plateau = torch.optim.lr_scheduler.ReduceLROnPlateau


def _held(optimizer):
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


def test_the_default_is_adam_on_everything_that_is_trained():
    model, rule = make_model(), LooksAtOtherData()
    model.network.heads[0].bias.requires_grad_(False)
    optimizer = make_optimizer(None, model, rule)
    assert type(optimizer) is torch.optim.Adam
    assert optimizer.defaults["lr"] == 1e-3
    assert optimizer.defaults["fused"]
    wanted = {id(p) for p in (*model.parameters(), rule.weight)}
    assert _held(optimizer) == wanted - {id(model.network.heads[0].bias)}


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
        lambda p: torch.optim.AdamW(p, lr=1e-3),
        lambda p: torch.optim.RMSprop(p, lr=1e-3),
    ],
)
def test_any_optimiser_that_takes_one_gradient_trains(optimizer):
    _, history = fit_small(optimizer=optimizer)
    assert history[-1].losses["left"] < history[0].losses["left"]


def test_an_instance_is_taken_as_it_is():
    model = make_model()
    given = torch.optim.SGD(model.parameters(), lr=0.1)
    assert make_optimizer(given, model, lp.Linear()) is given
    assert len(given.param_groups) == 1
    before = model.network.bottom[0].weight.detach().clone()
    fit_small(model, optimizer=given)
    assert not torch.equal(before, model.network.bottom[0].weight)


def test_a_rules_own_parameters_join_an_instance_once():
    model, rule = make_model(), LooksAtOtherData()
    rule.still = nn.Parameter(torch.zeros(1), requires_grad=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        make_optimizer(optimizer, model, rule)
        assert [len(group["params"]) for group in optimizer.param_groups][1:] == [1]
        assert optimizer.param_groups[1]["params"][0] is rule.weight


def test_an_optimiser_of_the_users_network_is_refused():
    network = make_network()
    model = lp.LowRank(network, 2)
    count, first = sum(1 for _ in model.parameters()), next(model.named_parameters())[0]
    message = (
        f"the optimizer lacks {count} of the model's parameters, among them {first}; the manifold "
        "works on a copy of your network, so make the optimizer from model.parameters() "
        "(requires_grad_(False) stops what should not be trained)"
    )
    with pytest.raises(lp.UsageError, match=exactly(message)):
        fit_small(model, optimizer=torch.optim.SGD(network.parameters(), lr=0.1))


def test_an_optimiser_without_the_deltas_is_refused():
    model = make_model()
    partial = torch.optim.SGD(model.network.parameters(), lr=0.1)
    with pytest.raises(lp.UsageError, match=r"lacks .* among them deltas"):
        fit_small(model, optimizer=partial)


def test_an_optimiser_may_lack_what_is_not_trained():
    model = make_model()
    model.network.requires_grad_(False)
    trained = [p for p in model.parameters() if p.requires_grad]
    assert make_optimizer(torch.optim.SGD(trained, lr=0.1), model, lp.Linear())


def test_an_optimiser_that_needs_a_closure_is_refused():
    message = (
        "LBFGS evaluates the loss several times in a step, but the preferences of a step are drawn "
        "once; use an optimiser that takes one gradient per step, such as Adam or SGD"
    )
    with pytest.raises(lp.UsageError, match=exactly(message)):
        fit_small(optimizer=torch.optim.LBFGS)


def test_schedules_move_once_per_epoch():
    _, history = fit_small(scheduler=lambda o: StepLR(o, 1, gamma=0.5))
    assert [e.learning_rate for e in history] == pytest.approx([1e-3, 5e-4, 2.5e-4])


def test_schedules_can_move_with_every_step():
    _, history = fit_small(scheduler_interval="step", scheduler=lambda o: StepLR(o, 1, gamma=0.5))
    steps = len(make_loader())
    expected = [1e-3 / 2 ** (steps * epoch - 1) for epoch in (1, 2, 3)]
    assert [e.learning_rate for e in history] == pytest.approx(expected)


@pytest.mark.parametrize("interval", ["epoch", "step"])
def test_there_need_be_no_schedule(interval):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    assert make_scheduler(None, optimizer, interval) is None
    schedule = StepLR(optimizer, 1)
    assert make_scheduler(schedule, optimizer, interval) is schedule


def test_a_schedule_that_needs_the_loss_of_an_epoch_cannot_move_with_steps():
    message = "ReduceLROnPlateau looks at the loss of an epoch; use scheduler_interval='epoch'"
    with pytest.raises(lp.UsageError, match=exactly(message)):
        fit_small(scheduler=Plateau, scheduler_interval="step")


def test_an_unknown_interval_is_refused():
    with pytest.raises(lp.UsageError, match=r"^unknown scheduler_interval 'stp'; did"):
        fit_small(scheduler_interval="stp")


def test_a_schedule_of_another_optimiser_is_refused():
    model = make_model()
    other = torch.optim.SGD(model.parameters(), lr=0.1)
    message = (
        "the scheduler moves another optimizer than the one that trains; pass both, or a function "
        "that makes the scheduler from the optimizer"
    )
    with pytest.raises(lp.UsageError, match=exactly(message)):
        fit_small(model, scheduler=StepLR(other, 1))


def _stepped(parameters, make=lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)):
    optimizer = make(parameters)
    for parameter in parameters:
        parameter.grad = torch.arange(1.0, parameter.numel() + 1).view_as(parameter)
    optimizer.step()
    return optimizer


def test_what_is_no_longer_trained_leaves_the_optimiser_with_its_state():
    still, trained, unseen = (nn.Parameter(torch.ones(2)) for _ in range(3))
    optimizer = _stepped([still, trained])
    optimizer.add_param_group({"params": [unseen]})
    still.requires_grad_(False)
    unseen.requires_grad_(False)  # has no state yet
    drop_frozen(optimizer)
    assert [group["params"] for group in optimizer.param_groups] == [[trained], []]
    assert list(optimizer.state) == [trained]
    before = still.clone()
    optimizer.step()
    assert torch.equal(still, before)


def _halved(parameter):
    """Keep the first half of the rows."""
    before, rows = parameter.shape, len(parameter) // 2
    parameter.data, parameter.grad = parameter.data[:rows].clone(), None
    return {parameter: Cut(before, lambda value: value[:rows])}


def test_momentum_is_cut_with_its_parameter():
    parameter, other = nn.Parameter(torch.zeros(4, 3)), nn.Parameter(torch.zeros(2))
    optimizer = _stepped([parameter, other], lambda p: torch.optim.Adam(p, lr=0.1))
    before = {key: value.clone() for key, value in optimizer.state[parameter].items()}
    cut_state(optimizer, _halved(parameter))
    after = optimizer.state[parameter]
    assert torch.equal(after["exp_avg"], before["exp_avg"][:2])
    assert torch.equal(after["exp_avg_sq"], before["exp_avg_sq"][:2])
    assert torch.equal(after["step"], before["step"])
    assert optimizer.state[other]["exp_avg"].shape == (2,)


def test_sums_over_rows_or_columns_start_anew():
    parameter = nn.Parameter(torch.zeros(4, 3))
    optimizer = _stepped([parameter], lambda p: torch.optim.Adafactor(p, lr=0.1))
    assert any(value.shape == (4, 1) for value in optimizer.state[parameter].values())
    cut_state(optimizer, _halved(parameter))
    assert parameter not in optimizer.state


def test_nothing_is_cut_of_what_the_optimiser_does_not_know():
    parameter = nn.Parameter(torch.zeros(4, 3))
    optimizer = torch.optim.Adam([parameter])
    cut_state(optimizer, _halved(parameter))
    assert not optimizer.state
