"""The analytic cases of the single-solution methods, and what each of them promises."""

import math

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.rules.auto_lambda import lambda_gradient
from lorpman.rules.cagrad import cagrad_weights
from lorpman.rules.dwa import dwa_weights
from lorpman.rules.graddrop import graddrop
from lorpman.rules.imtl import impartial_weights
from lorpman.rules.mgda import mgda_weights
from lorpman.rules.nash_mtl import nash_weights
from lorpman.rules.pcgrad import pcgrad_weights
from lorpman.rules.rotograd import common_gradient, rotation, scaled_sum, with_rotations
from properties import (
    assert_common_descent,
    assert_loss_scale_invariant,
    assert_permutation_equivariant,
)
from rules.small import gram_of, network, one_step, point_step, random_gram, tasks


def _close(found, expected, tolerance=1e-4):
    torch.testing.assert_close(
        torch.as_tensor(found).double(), torch.tensor(expected).double(), atol=tolerance, rtol=0
    )


def _direction(weights, rows):
    return weights @ torch.tensor(rows, dtype=torch.float64)


# MGDA


def test_mgda():
    rows = [[2.0, 0.0], [0.0, 1.0]]
    weights = mgda_weights(gram_of(rows), torch.ones(2))
    _close(weights, [0.2, 0.8])
    _close(_direction(weights, rows), [0.4, 0.8])


@pytest.mark.parametrize(
    ("normalisation", "sizes"), [("l2", [2, 1]), ("loss", [3, 5]), ("loss+", [6, 5])]
)
def test_mgda_normalises_before_it_chooses(normalisation, sizes):
    rows = [[2.0, 0.0], [0.0, 1.0]]
    weights = mgda_weights(gram_of(rows), torch.tensor([3.0, 5.0]), normalisation)
    divided = [[value / size for value in row] for row, size in zip(rows, sizes, strict=True)]
    _close(weights, mgda_weights(gram_of(divided), torch.ones(2)).tolist())


def test_mgda_gives_no_weight_to_a_longer_parallel_gradient():
    _close(mgda_weights(gram_of([[1.0, 0.0], [3.0, 0.0]]), torch.ones(2)), [1.0, 0.0])


# PCGrad


def test_pcgrad():
    rows = [[1.0, 0.0], [-1.0, 1.0]]
    weights = pcgrad_weights(gram_of(rows), torch.tensor([[0, 1], [1, 0]]))
    _close(_direction(weights, rows), [0.5, 1.5])


def test_pcgrad_leaves_gradients_that_agree():
    _close(pcgrad_weights(torch.eye(3) + 0.1, torch.arange(3).expand(3, 3)), [1.0, 1.0, 1.0])


def test_pcgrad_projects_in_turn_off_the_originals():
    rows = torch.randn(4, 6, dtype=torch.float64)
    orders = torch.stack([torch.randperm(4) for _ in range(4)])
    total = torch.zeros(6, dtype=torch.float64)
    for i in range(4):
        own = rows[i].clone()
        for j in orders[i].tolist():
            if j != i and own @ rows[j] < 0:
                own = own - (own @ rows[j]) / (rows[j] @ rows[j]) * rows[j]
        total += own
    torch.testing.assert_close(pcgrad_weights(rows @ rows.T, orders) @ rows, total)


# IMTL


def test_imtl_g():
    rows = [[2.0, 0.0], [0.0, 1.0]]
    weights = impartial_weights(gram_of(rows))
    _close(weights, [1 / 3, 2 / 3])
    _close(_direction(weights, rows), [2 / 3, 2 / 3])


def test_imtl_g_projects_equally_on_all_tasks():
    gram = random_gram(5)
    weights = impartial_weights(gram)
    projections = (gram @ weights) / gram.diagonal().sqrt()
    torch.testing.assert_close(projections, projections.mean().expand(5))
    assert weights.sum().item() == pytest.approx(1)


@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_imtl_g_of_parallel_gradients(factor):
    """|g_2| / (|g_1| + |g_2|) for two tasks, where the equations have many or no solutions."""
    _close(impartial_weights(gram_of([[2.0, 0.0], [factor, 0.0]])), [1 / 3, 2 / 3])


def test_imtl_l_scales_a_constant_loss_to_one():
    rule = lp.rules.ImpartialLosses()
    rule.prepare(lp.Single(nn.Linear(1, 1), 2))
    fixed = torch.tensor([[4.0, 0.5]])
    optimizer = torch.optim.SGD(rule.parameters(), lr=0.1)
    for _ in range(500):
        optimizer.zero_grad()
        rule(torch.ones(1, 2) / 2, fixed, None).backward()
        optimizer.step()
    _close(rule.scales.detach(), [-math.log(4.0), -math.log(0.5)])


def test_imtl_scales_are_trained_by_the_scaled_losses():
    model, rule = lp.Single(network(), 2), lp.rules.IMTL()
    rule.prepare(model)
    step = one_step(model, rule)
    torch.testing.assert_close(rule.scales.grad, step.losses[0].detach() - 1)


# GradDrop


def test_graddrop_keeps_the_sum_in_expectation():
    matrix = torch.tensor([[3.0], [-1.0]]).expand(2, 200_000)
    kept = graddrop(matrix, torch.rand(200_000))
    assert set(kept.unique().tolist()) == {-1.0, 3.0}
    assert kept.mean().item() == pytest.approx(2.0, abs=0.02)


def test_graddrop_leaves_what_all_agree_on():
    matrix = torch.rand(3, 100)
    torch.testing.assert_close(graddrop(matrix, torch.rand(100)), matrix.sum(0))


# CAGrad


def test_cagrad():
    rows = [[1.0, 0.0], [0.0, 1.0]]
    weights = cagrad_weights(gram_of(rows), 0.5)
    _close(_direction(weights, rows), [0.75, 0.75])
    _close(_direction(weights / 1.25, rows), [0.6, 0.6])
    rows = [[3.0, 0.0], [-1.0, 1.0]]
    _close(_direction(cagrad_weights(gram_of(rows), 0.5), rows), [0.60472, 0.89528])


def test_cagrad_without_c_is_the_mean():
    _close(cagrad_weights(random_gram(4), 0.0), [0.25] * 4)


def test_cagrad_at_a_stationary_point_is_finite():
    assert cagrad_weights(gram_of([[1.0, 0.0], [-1.0, 0.0]]), 0.4).isfinite().all()
    assert cagrad_weights(gram_of([[2.0, 0.0], [-1.0, 0.0]]), 0.4).isfinite().all()


# Nash-MTL


def test_nash():
    gram = gram_of([[3.0, 0.0], [-1.0, 1.0]])
    weights = nash_weights(gram)
    _close(weights, [0.61592, 1.30656])
    assert (weights @ gram @ weights).item() == pytest.approx(2)


def test_nash_in_closed_form():
    a, b, c = 5.0, -1.5, 2.0
    weights = nash_weights(torch.tensor([[a, b], [b, c]]))
    assert weights[0].item() == pytest.approx((a + b * math.sqrt(a / c)) ** -0.5)


def test_nash_at_a_stationary_point_is_finite():
    assert nash_weights(gram_of([[1.0, 0.0], [-1.0, 0.0]])).isfinite().all()


def test_nash_keeps_its_weights_between_updates():
    model, rule = lp.Single(network(), 2), lp.rules.NashMTL(update_every=2)
    rule.prepare(model)
    seen = []
    for _ in range(3):
        one_step(model, rule, learning_rate=0.1)
        seen.append(rule.kept.clone())
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])


def test_nash_shortens_only_the_shared_gradient():
    lengths = []
    for max_norm in (None, 1.0):
        model = lp.Single(network(), 2)
        rule = lp.rules.NashMTL(max_norm=max_norm)
        rule.prepare(model)
        one_step(model, rule)
        parts = (model.network.bottom, model.network.heads)
        grads = [torch.cat([p.grad.flatten() for p in part.parameters()]) for part in parts]
        lengths.append([g.norm().item() for g in grads])
    (free, head), (clipped, same) = lengths
    assert free == pytest.approx(2**0.5, rel=1e-4)
    assert clipped == pytest.approx(1, rel=1e-4)
    assert head == pytest.approx(same)


# Promises


@pytest.mark.parametrize("m", [2, 3, 12, 40])
def test_common_descent(m):
    """Every task's loss falls, also where the gradients conflict."""
    gram = random_gram(m, shift=-0.6)
    for rule in (lambda k: mgda_weights(k, torch.ones(len(k))), nash_weights):
        assert_common_descent(gram, rule(gram))


def test_cagrad_descends_for_the_worst_off_more_than_the_mean():
    gram = random_gram(6, shift=-0.6)
    even = torch.full((6,), 1 / 6).double()
    assert (gram @ cagrad_weights(gram, 0.5)).min() > (gram @ even).min()


@pytest.mark.parametrize("m", [2, 5, 40])
def test_renumbering_tasks_changes_nothing(m):
    gram = random_gram(m)
    for rule in (
        lambda k: mgda_weights(k, torch.ones(len(k))),
        impartial_weights,
        nash_weights,
        lambda k: cagrad_weights(k, 0.4),
    ):
        assert_permutation_equivariant(rule, gram)


@pytest.mark.parametrize("m", [2, 5, 40])
def test_nash_ignores_the_scales_of_the_losses(m):
    assert_loss_scale_invariant(nash_weights, random_gram(m))


# Scalar weightings


def test_uw_tends_to_the_log_of_a_constant_loss():
    rule = lp.rules.UncertaintyWeighting()
    rule.prepare(lp.Single(nn.Linear(1, 1), 1))
    optimizer = torch.optim.SGD(rule.parameters(), lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        rule(torch.ones(1, 1), torch.tensor([[4.0]]), None).backward()
        optimizer.step()
    _close(rule.scales.detach(), [math.log(4)])


def test_dwa():
    _close(dwa_weights(torch.tensor([0.5, 1.0])), [0.87565, 1.12435])
    _close(dwa_weights(torch.tensor([math.nan, math.inf])), [1.0, 1.0])


def test_dwa_compares_the_last_two_periods():
    model, rule = lp.Single(network(), 2), lp.rules.DynamicWeightAverage()
    rule.prepare(model)
    seen = []
    for epoch in (0, 0, 1, 1, 2):
        seen.append(one_step(model, rule, learning_rate=0.1, epoch=epoch).losses[0].detach())
    ratio = (seen[2] + seen[3]) / (seen[0] + seen[1])
    last = rule.history[1] / rule.history[0]
    torch.testing.assert_close(last, ratio)
    assert rule.counts.tolist() == [2, 1, 2]


def test_rlw_weights_sum_to_one_and_are_fair():
    rule, losses = lp.rules.RandomWeighting(), torch.eye(4)[:1].repeat(20_000, 1)
    mean = rule(losses, losses, None) / len(losses)
    assert mean.item() == pytest.approx(0.25, abs=0.01)
    assert rule(losses, torch.ones(7, 4), None).item() == pytest.approx(7, rel=1e-5)


# RotoGrad


def test_rotograd_of_equal_gradients_is_their_sum():
    rows = torch.randn(1, 12).expand(3, 12)
    torch.testing.assert_close(scaled_sum(rows, rows.norm(dim=1)), 3 * rows[0])
    torch.testing.assert_close(common_gradient(rows), rows[0])


def test_rotations_start_as_the_identity_and_stay_orthogonal():
    plain = network()
    model, rule = lp.Single(with_rotations(plain), 2), lp.rules.RotoGrad(rate=10.0)
    x = torch.randn(5, 4)
    for a, b in zip(plain(x), model.network(x), strict=True):
        torch.testing.assert_close(a, b)
    rule.prepare(model)
    for _ in range(5):
        one_step(model, rule, learning_rate=0.1)
    for head in model.network.heads:
        R = rotation(head[0].skew)
        torch.testing.assert_close(R @ R.T, torch.eye(len(R)), atol=1e-5, rtol=0)
        assert (R - torch.eye(len(R))).abs().max() > 0.01


def test_rotations_align_the_gradients():
    """Where two tasks want opposite features, a turn lets both have them."""
    torch.manual_seed(3)
    model, rule = lp.Single(with_rotations(network()), 2), lp.rules.RotoGrad(rate=1.0)
    rule.prepare(model)
    step = one_step(model, rule)

    def cosine():
        z = model.network.bottom(step.batch[0]).detach().requires_grad_()
        outputs = [head(z) for head in model.network.heads]
        losses = [
            task.loss(out, y) for task, out, y in zip(tasks(2), outputs, step.batch[1], strict=True)
        ]
        first, second = (torch.autograd.grad(loss, z, retain_graph=True)[0] for loss in losses)
        return torch.cosine_similarity(first.flatten(), second.flatten(), 0).item()

    before = cosine()
    for _ in range(100):
        one_step(model, rule, learning_rate=1e-2, update=False)
    assert cosine() > before + 0.1


# Auto-lambda


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
