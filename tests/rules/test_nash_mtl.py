import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lorpman as lp
from lorpman.rules.nash_mtl import nash_weights
from lorpman.rules.solvers import SolverFailed
from properties import (
    assert_common_descent,
    assert_loss_scale_invariant,
    assert_permutation_equivariant,
)
from rules.small import close, gram_of, network, one_step, random_gram, spread_gram


def test_nash():
    gram = gram_of([[3.0, 0.0], [-1.0, 1.0]])
    weights = nash_weights(gram)
    close(weights, [0.61592, 1.30656])
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
    for max_norm in (None, 1.0, 10.0):
        model = lp.Single(network(), 2)
        rule = lp.rules.NashMTL(max_norm=max_norm)
        rule.prepare(model)
        one_step(model, rule)
        parts = (model.network.bottom, model.network.heads)
        grads = [torch.cat([p.grad.flatten() for p in part.parameters()]) for part in parts]
        lengths.append([g.norm().item() for g in grads])
    (free, head), (clipped, same), (short_enough, _) = lengths
    assert free == pytest.approx(2**0.5, rel=1e-4)
    assert short_enough == pytest.approx(free)
    assert clipped == pytest.approx(1, rel=1e-4)
    assert head == pytest.approx(same)


@given(st.integers(0, 10**6), st.integers(2, 40))
def test_nash_is_the_bargain(seed, m):
    gram = spread_gram(seed, m, 3 * m)
    w = nash_weights(gram)
    assert (w > 0).all()
    torch.testing.assert_close(w * (gram @ w), torch.ones(m).double(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("m", [2, 5, 40])
def test_nash_ignores_the_scales_of_the_losses(m):
    assert_loss_scale_invariant(nash_weights, random_gram(m))


@pytest.mark.parametrize("m", [2, 3, 12, 40])
def test_every_loss_falls_also_where_gradients_conflict(m):
    gram = random_gram(m, shift=-0.6)
    assert_common_descent(gram, nash_weights(gram))


@pytest.mark.parametrize("m", [2, 5, 40])
def test_renumbering_tasks_changes_nothing(m):
    assert_permutation_equivariant(nash_weights, random_gram(m))


def test_a_task_without_gradient_does_not_spoil_the_others():
    weights = nash_weights(torch.tensor([[4.0, 0.0], [0.0, 0.0]]))
    assert weights.isfinite().all()
    assert weights[0].item() == pytest.approx(0.5)


def test_what_is_no_bargain_is_refused():
    with pytest.raises(SolverFailed, match="Nash bargain of 2 tasks"):
        nash_weights(torch.tensor([[1.0, -3.0], [-3.0, 1.0]]))


def test_updates_are_at_least_every_step():
    with pytest.raises(lp.UsageError, match="update_every must be at least 1, got 0"):
        lp.rules.NashMTL(update_every=0)
    assert lp.rules.NashMTL().max_norm == 1.0


def test_the_players_bargain_anew_in_every_step_by_default():
    rule = lp.rules.NashMTL()
    assert (rule.update_every, rule.max_norm) == (1, 1.0)
