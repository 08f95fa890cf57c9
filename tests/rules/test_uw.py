import math

import pytest
import torch
from torch import nn

import lorpman as lp
from rules.small import close


def test_uw_tends_to_the_log_of_a_constant_loss():
    rule = lp.rules.UncertaintyWeighting()
    rule.prepare(lp.Single(nn.Linear(1, 1), 1))
    optimizer = torch.optim.SGD(rule.parameters(), lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        rule(torch.ones(1, 1), torch.tensor([[4.0]]), None).backward()
        optimizer.step()
    close(rule.scales.detach(), [math.log(4)])


def test_it_is_half_the_scaled_losses_and_their_scales():
    rule = lp.rules.UncertaintyWeighting(initial=math.log(2))
    rule.prepare(lp.Single(nn.Linear(1, 1), 2))
    close(rule.scales.detach(), [math.log(2)] * 2, 1e-6)
    value = rule(torch.ones(1, 2), torch.tensor([[4.0, 6.0]]), None).item()
    assert value == pytest.approx(0.5 * (2 + 3 + 2 * math.log(2)))
