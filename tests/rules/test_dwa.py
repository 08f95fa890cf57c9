import math

import pytest
import torch

import lorpman as lp
from lorpman.rules.dwa import dwa_weights
from rules.small import close, network, one_step
from steps import step_of


def test_dwa():
    close(dwa_weights(torch.tensor([0.5, 1.0])), [0.87565, 1.12435])
    close(dwa_weights(torch.tensor([math.nan, math.inf])), [1.0, 1.0])


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


def _totals(rule, epochs):
    """What is back-propagated in each step, if the losses halve once and for one task only."""
    rule.prepare(lp.Single(network(), 2))
    totals = []
    for place, epoch in enumerate(epochs):
        first = 1.0 if place < 2 else 0.5
        # Two preferences whose mean counts.
        losses = torch.tensor([[first, 0.5], [first, 1.5]])
        rule.backward(step_of(None, torch.ones(2, 2), losses, totals.append, epoch=epoch))
    return [total.item() for total in totals]


def test_weights_are_even_until_two_epochs_are_over():
    first, second = dwa_weights(torch.tensor([0.5, 1.0])).tolist()
    totals = _totals(lp.rules.DynamicWeightAverage(), [0, 0, 1, 1, 2, 2])
    assert totals[:4] == [4.0, 4.0, 3.0, 3.0]
    assert totals[4:] == [pytest.approx(2 * 0.5 * first + 2 * second)] * 2


def test_a_period_may_be_a_number_of_steps():
    first, second = dwa_weights(torch.tensor([0.5, 1.0]), 1.0).tolist()
    totals = _totals(lp.rules.DynamicWeightAverage(temperature=1.0, period=2), [0] * 5)
    assert totals[:4] == [4.0, 4.0, 3.0, 3.0]
    assert totals[4] == pytest.approx(2 * 0.5 * first + 2 * second)


def test_a_temperature_that_is_not_positive_is_refused():
    with pytest.raises(lp.UsageError, match="temperature must be positive, got 0"):
        lp.rules.DynamicWeightAverage(temperature=0.0)
