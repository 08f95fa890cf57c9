import pytest
import torch

import lorpman as lp


def test_rlw_weights_sum_to_one_and_are_fair():
    rule, losses = lp.rules.RandomWeighting(), torch.eye(4)[:1].repeat(20_000, 1)
    mean = rule(losses, losses, None) / len(losses)
    assert mean.item() == pytest.approx(0.25, abs=0.01)
    assert rule(losses[:7], torch.ones(7, 4), None).item() == pytest.approx(7, rel=1e-5)
