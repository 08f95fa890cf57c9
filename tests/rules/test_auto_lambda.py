import pytest
import torch

import lorpman as lp
from lorpman.rules.auto_lambda import lambda_gradient
from rules.small import make_step, network, one_step, point_step


def test_auto_lambda_is_exact_for_quadratics():
    """-rate sum_j (theta' - a_j) . (theta - a_i) for f_i = |theta - a_i|^2 / 2."""
    targets = torch.randn(3, 6, dtype=torch.float64)
    start = torch.randn(6, dtype=torch.float64)
    lambdas, rate = torch.tensor([0.3, 0.5, 0.2]).double(), 0.1
    step, point = point_step(start, targets, rate)
    found = lambda_gradient(step, lambdas)
    ahead = start - rate * (lambdas[:, None] * (start - targets)).sum(0)
    expected = -rate * (start - targets) @ (ahead - targets).sum(0)
    torch.testing.assert_close(found, expected)
    assert torch.equal(point.theta.detach(), start), "theta must be restored exactly"


def test_the_step_ahead_has_the_momentum_and_decay_of_the_run():
    targets = torch.randn(2, 5, dtype=torch.float64)
    start, momentum = torch.randn(2, 5, dtype=torch.float64)
    lambdas, rate = torch.tensor([0.3, 0.5]).double(), 0.1
    step, point = point_step(start, targets, rate)
    (group,) = step.optimizer.param_groups
    group["momentum"], group["weight_decay"] = 0.9, 0.2
    step.optimizer.state[point.theta]["momentum_buffer"] = momentum.clone()
    plain = (lambdas[:, None] * (start - targets)).sum(0)
    ahead = start - rate * (plain + 0.9 * momentum + 0.2 * start)
    expected = -rate * (start - targets) @ (ahead - targets).sum(0)
    torch.testing.assert_close(lambda_gradient(step, lambdas), expected)


def test_nothing_to_gain_ahead_moves_nothing():
    """Where the other batch has no gradient, there is no direction to look along."""
    target = torch.zeros(1, 3, dtype=torch.float64)
    step, _ = point_step(torch.ones(3, dtype=torch.float64), target, 1.0)
    assert lambda_gradient(step, torch.ones(1).double()).tolist() == [0.0]


def test_the_first_move_is_one_rate_against_the_gradient():
    model, rule = lp.Single(network(), 2), lp.rules.AutoLambda(initial=0.2, rate=1e-3)
    rule.prepare(model)
    step = make_step(model)
    sign = lambda_gradient(step, rule.lambdas).sign()
    totals = []
    object.__setattr__(step, "backward", totals.append)
    rule.backward(step)
    torch.testing.assert_close(rule.lambdas, 0.2 - 1e-3 * sign)
    expected = (rule.lambdas * step.losses[0]).sum()
    assert totals[0].item() == pytest.approx(expected.item())


def test_auto_lambda_leaves_weights_and_statistics():
    model, rule = lp.Single(network(norm=True), 2), lp.rules.AutoLambda()
    rule.prepare(model)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    step = one_step(model, rule, update=False)
    with torch.no_grad():
        model.load_state_dict(before)
        step.losses_at(step.alphas, step.batch)
    after = {k: v.clone() for k, v in model.state_dict().items()}
    one_step_state = one_step(lp.Single(network(norm=True), 2), lp.rules.RandomWeighting())
    other = one_step_state.model.state_dict()
    for name, value in after.items():
        if "running" in name:
            torch.testing.assert_close(value, other[name], msg=name)
    assert not torch.equal(rule.lambdas, torch.full((2,), 0.1))
