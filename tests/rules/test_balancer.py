import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman.manifold.finite import rays
from lorpman.rules.balancer import Row, Weighting, require_population
from lorpman.rules.task_gradients import task_gradients
from rules.small import assert_left, gradients_of, make_step, network, one_step


class Fixed(Weighting):
    """Weights that depend on the preference only, and heads that get twice as much."""

    def weights(self, row):
        return row.alpha * torch.arange(1.0, len(row.losses) + 1)

    def head_weights(self, weights):
        return 2 * weights


def test_a_row_is_detached_and_wide():
    model = lp.Population(network(), rays(2, 3))
    step = make_step(model)
    row = Row.of(task_gradients(step, 1), 1, step)
    assert (row.losses.dtype, row.gram.dtype, row.alpha.dtype) == (torch.float64,) * 3
    assert not row.losses.requires_grad
    assert not row.all_losses.requires_grad
    torch.testing.assert_close(row.all_losses, step.losses.detach().double())
    assert torch.equal(row.losses, row.all_losses[1])
    torch.testing.assert_close(row.alpha, step.alphas[1].double())


def test_every_member_gets_the_weighted_gradients_of_its_own_losses():
    model = lp.Population(network(), rays(2, 3), independent=True)
    step = make_step(model)
    weights = step.alphas * torch.tensor([1.0, 2.0])
    expected = gradients_of(model, (weights * step.losses).sum())
    Fixed().backward(step)
    for name, parameter in model.named_parameters():
        factor = 2 if "heads" in name else 1
        torch.testing.assert_close(parameter.grad, factor * expected[name], msg=name)


def test_heads_are_weighted_like_their_tasks_unless_a_rule_says_otherwise():
    class Even(Weighting):
        def weights(self, row):
            return torch.tensor([3.0, 1.0])

    model = lp.Single(network(), 2)
    step = one_step(model, Even(), update=False)
    assert_left(model, gradients_of(model, 3 * step.losses[0, 0] + step.losses[0, 1]))


def test_balancers_refuse_a_continuous_manifold():
    for rule in (lp.rules.MGDA(), lp.rules.GradDrop(), lp.rules.AutoLambda()):
        with pytest.raises(lp.UsageError, match=r"applies to lp\.Single"):
            rule.prepare(lp.LowRank(network(), 2))
    for rule in (lp.rules.PMTL(), lp.rules.MOOSVGD(), lp.rules.PNG()):
        with pytest.raises(lp.UsageError, match=r"applies to lp\.Population"):
            rule.prepare(lp.Single(network(), 2))


def test_feature_methods_need_a_shared_bottom():
    for rule in (lp.rules.FeatureMGDA(), lp.rules.RotoGrad()):
        with pytest.raises(lp.UsageError, match="Single over Linear"):
            rule.prepare(lp.Single(nn.Linear(4, 2), 2))
        with pytest.raises(lp.UsageError, match="found Population"):
            rule.prepare(lp.Population(network(), rays(2, 2)))


def test_a_population_of_one_is_one():
    population = lp.Population(network(), rays(2, 1))
    assert require_population(lp.rules.PMTL(), population) is population
