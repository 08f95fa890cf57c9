import math

import pytest
import torch
from torch import nn

import lorpman as lp
from lorpman import Linear, LowRank, MultiForward, Orthogonality, UsageError, dirichlet
from lorpman.manifold.base import Manifold
from properties import randomise
from steps import step_of


def _model(num_tasks=2, rank=3):
    model = LowRank(nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4)), num_tasks, rank)
    randomise(model)
    return model


def test_linear_is_the_sum_over_preferences():
    alphas = torch.tensor([[0.25, 0.75], [1.0, 0.0]])
    losses = torch.tensor([[4.0, 8.0], [3.0, 100.0]])
    assert Linear()(alphas, losses, _model()).item() == pytest.approx(1 + 6 + 3)


def test_terms_add_and_scale():
    alphas, losses, model = dirichlet(2, 3), torch.rand(3, 2), _model()
    parts = [term(alphas, losses, model) for term in (Linear(), MultiForward(), Orthogonality())]
    objective = 2 * (Linear() + 5.0 * MultiForward() + 0.5 * Orthogonality())
    expected = 2 * (parts[0] + 5 * parts[1] + 0.5 * parts[2])
    torch.testing.assert_close(objective(alphas, losses, model), expected)


def test_a_term_of_weight_zero_is_not_evaluated():
    class Other(Manifold):
        def forward(self, x, alpha):
            return x

        def solution(self, alpha):
            return nn.Identity()

    alphas, losses = dirichlet(2, 3), torch.rand(3, 2)
    objective = Linear() + 0.0 * Orthogonality()
    assert objective(alphas, losses, Other(2)) == Linear()(alphas, losses, Other(2))
    with pytest.raises(UsageError, match="applies to a LowRank manifold, found Other"):
        (Linear() + 0.1 * Orthogonality())(alphas, losses, Other(2))


def test_a_term_is_not_added_to_a_number():
    with pytest.raises(TypeError):
        Linear() + 1.0
    with pytest.raises(UsageError, match="must be finite"):
        math.nan * Linear()


def test_terms_can_be_summed():
    alphas, losses, model = dirichlet(2, 3), torch.rand(3, 2), _model()
    total = sum([Linear(), Linear(), MultiForward()])
    expected = 2 * Linear()(alphas, losses, model) + MultiForward()(alphas, losses, model)
    torch.testing.assert_close(total(alphas, losses, model), expected)


def test_an_objective_reads_as_its_formula():
    assert repr(2.0 * Linear()) == "2.0 * Linear()"
    assert repr(Linear() + MultiForward()) == "Linear() + 1.0 * MultiForward()"
    assert repr(3 * (Linear() + 2 * MultiForward())) == "3.0 * Linear() + 6.0 * MultiForward()"


def test_an_objective_without_terms_has_a_gradient_of_zero():
    losses = torch.rand(3, 2, requires_grad=True)
    (0.0 * Linear())(torch.ones_like(losses), losses, None).backward()
    assert torch.equal(losses.grad, torch.zeros(3, 2))


def test_every_term_of_a_sum_is_prepared():
    objective = Linear() + 0.5 * lp.rules.UncertaintyWeighting()
    objective.prepare(_model())
    assert [p.shape for p in objective.parameters()] == [(2,)]


def test_a_step_back_propagates_the_value():
    alphas, losses, seen = dirichlet(2, 3), torch.rand(3, 2), []
    Linear().backward(step_of(_model(), alphas, losses, seen.append))
    assert seen == [(alphas * losses).sum()]
