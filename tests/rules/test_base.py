import torch

import lorpman as lp
from steps import step_of


def test_losses_are_computed_when_first_read_and_only_then():
    calls = []

    def losses_at(alphas, batch):
        calls.append((alphas, batch))
        return torch.ones(1, 2)

    step = step_of(None, torch.ones(1, 2) / 2, None)
    object.__setattr__(step, "losses_at", losses_at)
    assert calls == []
    assert step.losses is step.losses
    ((alphas, batch),) = calls
    assert alphas is step.alphas
    assert batch is step.batch


def test_the_state_of_a_rule_survives_a_checkpoint():
    rule, other = lp.rules.UncertaintyWeighting(0.5), lp.rules.UncertaintyWeighting()
    for one in (rule, other):
        one.prepare(lp.Single(torch.nn.Linear(1, 1), 2))
    other.load_state_dict(rule.state_dict())
    assert other.scales.tolist() == [0.5, 0.5]
