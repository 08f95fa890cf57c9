import pytest
import torch

import lorpman as lp
from lorpman.rules.graddrop import graddrop
from lorpman.rules.task_gradients import task_gradients
from rules.small import assert_left, gradients_of, make_step, network


def test_graddrop_keeps_the_sum_in_expectation():
    matrix = torch.tensor([[3.0], [-1.0]]).expand(2, 200_000)
    kept = graddrop(matrix, torch.rand(200_000))
    assert set(kept.unique().tolist()) == {-1.0, 3.0}
    assert kept.mean().item() == pytest.approx(2.0, abs=0.02)


def test_graddrop_leaves_what_all_agree_on():
    matrix = torch.rand(3, 100)
    torch.testing.assert_close(graddrop(matrix, torch.rand(100)), matrix.sum(0))


def test_a_number_without_gradients_stays_zero():
    assert graddrop(torch.zeros(2, 3), torch.tensor([0.0, 0.4, 0.9])).tolist() == [0.0] * 3


@pytest.mark.parametrize("leak", [0.0, 0.25, 1.0])
def test_what_leaks_and_what_is_kept_are_a_mean_over_tasks(leak):
    model, rule = lp.Single(network(3), 3), lp.rules.GradDrop(leak)
    step = make_step(model)
    matrix = task_gradients(step, 0).matrix
    torch.manual_seed(0)
    kept = graddrop(matrix, torch.rand(matrix.shape[1]))
    torch.manual_seed(0)
    rule.backward(step)
    found = torch.cat([p.grad.flatten() for p in model.network.bottom.parameters()])
    torch.testing.assert_close(found, (leak * matrix.sum(0) + (1 - leak) * kept) / 3)
    heads = model.network.heads
    assert_left(heads, gradients_of(heads, step.losses[0].mean()))


@pytest.mark.parametrize("leak", [-0.1, 1.1])
def test_a_leak_out_of_range_is_refused(leak):
    with pytest.raises(lp.UsageError, match="leak must be between 0 and 1"):
        lp.rules.GradDrop(leak)
