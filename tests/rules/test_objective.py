import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lorpman import (
    Chebyshev,
    Cosine,
    Linear,
    LowRank,
    MultiForward,
    Orthogonality,
    SmoothChebyshev,
    UsageError,
    dirichlet,
)
from lorpman.manifold.base import Manifold
from lorpman.rules.objective import multi_forward, opposite, orthogonality
from properties import randomise

ONE_TASK = (torch.tensor([[0.8], [0.5], [0.2]]), torch.tensor([[0.5], [0.4], [0.9]]))


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


@pytest.mark.parametrize(
    ("as_printed", "chain", "expected"),
    [(True, False, 0.3222), (True, True, 0.2809), (False, False, 0.0345), (False, True, 0.0512)],
)
def test_multi_forward_of_one_task(as_printed, chain, expected):
    assert multi_forward(*ONE_TASK, as_printed, chain).item() == pytest.approx(expected, abs=5e-5)


def test_multi_forward_punishes_the_wrong_order():
    alphas = torch.tensor([[0.2, 0.8], [0.8, 0.2]])
    right = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    wrong = right.flip(0)
    model = _model()
    assert MultiForward()(alphas, right, model) == 0
    assert MultiForward()(alphas, wrong, model) > 0.5
    assert MultiForward(as_printed=True)(alphas, right, model) > 0.5
    assert MultiForward(as_printed=True)(alphas, wrong, model) == 0


def test_multi_forward_gradient_lowers_the_loss_of_the_weightier_preference():
    alphas = torch.tensor([[0.2], [0.8]])
    losses = torch.tensor([[0.3], [0.7]], requires_grad=True)
    multi_forward(alphas, losses).backward()
    assert losses.grad[1] > 0 > losses.grad[0]


@pytest.mark.parametrize("chain", [False, True])
@pytest.mark.parametrize("alphas", [[[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
def test_multi_forward_without_an_edge_is_zero(alphas, chain):
    losses = torch.rand(len(alphas), 2, requires_grad=True)
    value = multi_forward(torch.tensor(alphas), losses, chain=chain)
    value.backward()
    assert value == 0
    assert torch.equal(losses.grad, torch.zeros_like(losses))


def test_multi_forward_does_not_overflow():
    alphas = torch.tensor([[0.2], [0.8]])
    assert multi_forward(alphas, torch.tensor([[0.0], [1e4]])).item() == pytest.approx(1e4)


def test_the_objective_of_cosmos():
    alphas, losses = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 2.0]])
    objective = Linear() + 1.0 * Cosine()
    assert objective(alphas, losses, _model()).item() == pytest.approx(0.551317, abs=1e-6)
    # Over several preferences it is a sum, like everything else.
    twice = objective(alphas.expand(2, 2), losses.expand(2, 2), _model())
    assert twice.item() == pytest.approx(2 * 0.551317, abs=1e-6)


def test_cosine_pulls_against_linear_scalarisation_unless_inverted():
    alphas = torch.tensor([[0.9, 0.1]])
    small_first, large_first = torch.tensor([[0.1, 0.9]]), torch.tensor([[0.9, 0.1]])
    model = _model()
    assert Linear()(alphas, small_first, model) < Linear()(alphas, large_first, model)
    assert Cosine()(alphas, small_first, model) > Cosine()(alphas, large_first, model)
    inverted = Cosine(inverted=True)
    assert inverted(alphas, small_first, model) < inverted(alphas, large_first, model)


def test_opposite_rays():
    torch.testing.assert_close(opposite(torch.tensor([[0.3, 0.7]])), torch.tensor([[0.7, 0.3]]))
    rays = opposite(torch.tensor([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]))
    torch.testing.assert_close(rays.sum(1), torch.ones(2))
    assert rays[0, 0] < 1e-3
    weighted = rays[1] * torch.tensor([0.2, 0.3, 0.5])
    torch.testing.assert_close(weighted, weighted[:1].expand(3))


@given(seed=st.integers(0, 1000), m=st.integers(2, 3))
def test_orthogonality_is_the_papers_formula(seed, m):
    torch.manual_seed(seed)
    model = _model(m)
    expected = 0.0
    for delta in model.low_rank_deltas().values():
        flat = delta.dense().flatten(1)
        w = flat / flat.norm(dim=1, keepdim=True)
        expected += (w @ w.T - torch.eye(m)).square().sum() / len(model.low_rank_deltas())
    torch.testing.assert_close(Orthogonality()(None, None, model), expected, atol=1e-5, rtol=1e-4)


def test_orthogonality_at_the_start_is_zero_with_finite_gradients():
    model = LowRank(nn.Linear(6, 5), 2)
    value = Orthogonality()(None, None, model)
    value.backward()
    assert value == 0
    assert all(torch.isfinite(p.grad).all() for p in model.deltas.parameters())


def test_orthogonality_ignores_the_scale_of_the_deltas():
    gram = torch.tensor([[4.0, 1.0], [1.0, 9.0]])
    for factor in (1e-6, 1.0, 1e6):
        assert orthogonality(gram * factor).item() == pytest.approx(2 / 36, rel=1e-5)


def test_orthogonality_takes_a_fresh_subset_above_three_tasks():
    model = _model(num_tasks=6)
    values = {round(Orthogonality()(None, None, model).item(), 6) for _ in range(20)}
    assert len(values) > 3
    # Over many subsets, its mean is that of all pairs, scaled to the pairs of a subset.
    deltas = model.low_rank_deltas().values()
    everything = torch.stack([orthogonality(delta.gram()) for delta in deltas]).mean()
    mean = torch.stack([Orthogonality()(None, None, model) for _ in range(2000)]).mean()
    torch.testing.assert_close(mean, everything * (3 * 2) / (6 * 5), rtol=0.1, atol=0)


def test_chebyshev_is_the_largest_weighted_distance():
    alphas = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
    losses = torch.tensor([[2.0, 4.0], [3.0, 4.0]])
    assert Chebyshev()(alphas, losses, _model()).item() == pytest.approx(2.0 + 2.7)
    assert Chebyshev(ideal=[1.0, 3.0])(alphas, losses, _model()).item() == pytest.approx(0.5 + 1.8)
    with pytest.raises(UsageError, match="one number, or one per task"):
        Chebyshev(ideal=torch.tensor([[1.0], [3.0]]))


@given(mu=st.floats(1e-3, 1.0), seed=st.integers(0, 1000))
def test_smooth_chebyshev_bounds_chebyshev(mu, seed):
    torch.manual_seed(seed)
    alphas, losses, model = dirichlet(3, 4).double(), torch.rand(4, 3).double(), None
    gap = SmoothChebyshev(mu)(alphas, losses, model) - Chebyshev()(alphas, losses, model)
    assert -1e-9 <= gap <= 4 * mu * math.log(3) + 1e-9


@pytest.mark.parametrize("make", [lambda: SmoothChebyshev(0.0), lambda: Orthogonality(subset=1)])
def test_bad_settings_are_refused(make):
    with pytest.raises(UsageError):
        make()


def test_terms_can_be_summed():
    alphas, losses, model = dirichlet(2, 3), torch.rand(3, 2), _model()
    total = sum([Linear(), Linear(), MultiForward()])
    expected = 2 * Linear()(alphas, losses, model) + MultiForward()(alphas, losses, model)
    torch.testing.assert_close(total(alphas, losses, model), expected)
