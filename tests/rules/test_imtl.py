import math

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.rules.imtl import impartial_weights
from properties import assert_permutation_equivariant
from rules.small import close, gram_of, network, one_step, random_gram, row_of


def _direction(weights, rows):
    return weights @ torch.tensor(rows, dtype=torch.float64)


def test_imtl_g():
    rows = [[2.0, 0.0], [0.0, 1.0]]
    weights = impartial_weights(gram_of(rows))
    close(weights, [1 / 3, 2 / 3])
    close(_direction(weights, rows), [2 / 3, 2 / 3])


def test_imtl_g_projects_equally_on_all_tasks():
    gram = random_gram(5)
    weights = impartial_weights(gram)
    projections = (gram @ weights) / gram.diagonal().sqrt()
    torch.testing.assert_close(projections, projections.mean().expand(5))
    assert weights.sum().item() == pytest.approx(1)


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_imtl_g_of_parallel_gradients(factor):
    """|g_2| / (|g_1| + |g_2|) for two tasks, where the equations have many or no solutions."""
    close(impartial_weights(gram_of([[2.0, 0.0], [factor, 0.0]])), [1 / 3, 2 / 3])


@pytest.mark.parametrize("m", [2, 5, 40])
def test_renumbering_tasks_changes_nothing(m):
    assert_permutation_equivariant(impartial_weights, random_gram(m))


def test_a_task_without_gradient_gives_finite_weights():
    weights = impartial_weights(torch.tensor([[4.0, 0.0], [0.0, 0.0]]))
    assert weights.isfinite().all()
    assert weights.sum().item() == pytest.approx(1)


def test_impartial_losses_are_scaled_and_pay_for_it():
    rule = lp.rules.ImpartialLosses()
    rule.prepare(lp.Single(nn.Linear(1, 1), 2))
    assert rule.scales.tolist() == [0.0, 0.0]
    with torch.no_grad():
        rule.scales[0] = math.log(2)
    value = rule(torch.ones(1, 2), torch.tensor([[1.0, 3.0]]), None).item()
    assert value == pytest.approx(2 * 1 - math.log(2) + 3)


def test_imtl_l_scales_a_constant_loss_to_one():
    rule = lp.rules.ImpartialLosses()
    rule.prepare(lp.Single(nn.Linear(1, 1), 2))
    fixed = torch.tensor([[4.0, 0.5]])
    optimizer = torch.optim.SGD(rule.parameters(), lr=0.1)
    for _ in range(500):
        optimizer.zero_grad()
        rule(torch.ones(1, 2) / 2, fixed, None).backward()
        optimizer.step()
    close(rule.scales.detach(), [-math.log(4.0), -math.log(0.5)])


def test_imtl_scales_are_trained_by_the_scaled_losses():
    model, rule = lp.Single(network(), 2), lp.rules.IMTL()
    rule.prepare(model)
    step = one_step(model, rule)
    torch.testing.assert_close(rule.scales.grad, step.losses[0].detach() - 1)


def test_the_whole_method_balances_the_scaled_losses():
    rule = lp.rules.IMTL()
    rule.prepare(lp.Single(nn.Linear(1, 1), 2))
    with torch.no_grad():
        rule.scales[0] = math.log(2)
    weights = rule.weights(row_of(torch.diag(torch.tensor([4.0, 1.0]))))
    # Scaled gradients have lengths 4 and 1, so weights 1/5 and 4/5 of the scaled losses.
    close(weights, [2 * 0.2, 0.8], 1e-6)
    close(rule.head_weights(weights), [2.0, 1.0], 1e-6)


def test_gradients_alone_have_no_scales():
    rule = lp.rules.IMTL(scale_losses=False)
    rule.prepare(lp.Single(nn.Linear(1, 1), 2))
    assert list(rule.parameters()) == []
    weights = rule.weights(row_of(torch.diag(torch.tensor([4.0, 1.0]))))
    close(weights, [1 / 3, 2 / 3], 1e-6)
    assert rule.head_weights(weights).tolist() == [1.0, 1.0]
