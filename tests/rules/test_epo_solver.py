import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lorpman import UsageError
from lorpman.rules.epo_solver import (
    _balance_bounds,
    epo_weights,
    non_uniformity,
    solve_on_simplex,
)


def _weights(losses, gram, preference):
    tensors = (torch.tensor(v, dtype=torch.float64) for v in (losses, gram, preference))
    return epo_weights(*tensors)


def test_non_uniformity_of_the_worked_case():
    mu, a = non_uniformity(np.array([1.0, 1.0]), np.array([0.8, 0.2]))
    assert mu == pytest.approx(0.19274, abs=1e-5)
    assert a.tolist() == pytest.approx([0.22181, -0.22181], abs=1e-5)


@pytest.mark.parametrize(
    ("losses", "gram", "preference", "expected"),
    [
        ([1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], [0.8, 0.2], [1.0, 0.0]),
        ([1.0, 1.0], [[1.0, -0.5], [-0.5, 1.0]], [0.8, 0.2], [0.88847, 0.11153]),
        ([0.2, 0.8], [[1.0, 0.0], [0.0, 4.0]], [0.8, 0.2], [0.0, 1.0]),
    ],
)
def test_worked_cases(losses, gram, preference, expected):
    assert _weights(losses, gram, preference).tolist() == pytest.approx(expected, abs=1e-5)


def test_a_common_scale_of_gradients_does_not_matter():
    gram = torch.tensor([[1.0, -0.5], [-0.5, 1.0]], dtype=torch.float64)
    ones, preference = torch.ones(2).double(), torch.tensor([0.8, 0.2]).double()
    expected = epo_weights(ones, gram, preference)
    for scale in (1e-12, 1e12):
        torch.testing.assert_close(epo_weights(ones, scale * gram, preference), expected)


@given(seed=st.integers(0, 10_000), m=st.integers(2, 5))
def test_weights_are_of_the_simplex_and_no_other_point_is_better(seed, m):
    rng = np.random.default_rng(seed)
    objective, rows = rng.normal(size=m), rng.normal(size=(m, m))
    bounds = np.where(rng.random(m) < 0.3, -np.inf, rng.normal(size=m) - 1)
    found = solve_on_simplex(objective, rows, bounds)
    others = rng.dirichlet(np.ones(m), 2000)
    feasible = others[(others @ rows.T >= bounds).all(1)]
    if found is None:
        assert len(feasible) == 0
        return
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    assert (rows @ found >= bounds - 1e-6).all()
    assert (feasible @ objective <= found @ objective + 1e-6).all()


@given(seed=st.integers(0, 10_000))
def test_two_weights_agree_with_the_linear_programme(seed):
    from scipy.optimize import linprog

    rng = np.random.default_rng(seed)
    objective, rows, bounds = rng.normal(size=2), rng.normal(size=(3, 2)), rng.normal(size=3) - 0.7
    answer = linprog(
        -objective, A_ub=-rows, b_ub=-bounds, A_eq=np.ones((1, 2)), b_eq=[1.0], bounds=(0, 1)
    )
    found = solve_on_simplex(objective, rows, bounds)
    assert (found is not None) == answer.success
    if found is not None:
        assert found.tolist() == pytest.approx(answer.x.tolist(), abs=1e-6)


@given(seed=st.integers(0, 10_000), m=st.integers(2, 4))
def test_a_step_towards_the_ray_or_downhill(seed, m):
    torch.manual_seed(seed)
    gradients = torch.randn(m, 8, dtype=torch.float64)
    losses = torch.rand(m, dtype=torch.float64) + 0.1
    preference = torch.softmax(torch.randn(m), 0).double()
    weights = epo_weights(losses, gradients @ gradients.T, preference)
    assert weights.sum().item() == pytest.approx(1)
    moved = losses - 1e-5 * gradients @ (gradients.T @ weights)
    before, _ = non_uniformity(losses.numpy(), preference.numpy())
    after, _ = non_uniformity(moved.numpy(), preference.numpy())
    # In balance mode the point becomes fairer, wherever the gradients allow that at all.
    _, a = non_uniformity(losses.numpy(), preference.numpy())
    if (gradients @ gradients.T @ torch.from_numpy(a) > 1e-3).any() and before > 1e-3:
        assert after <= before + 1e-9


@pytest.mark.parametrize("preference", [[1.0, 0.0], [0.5, 0.5]])
def test_corners_and_zero_losses_give_finite_weights(preference):
    weights = _weights([0.0, 1.0], [[1.0, 0.2], [0.2, 1.0]], preference)
    assert torch.isfinite(weights).all()


def test_negative_losses_are_refused():
    with pytest.raises(UsageError, match="not negative"):
        _weights([-1.0, 1.0], [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])


def test_away_from_the_ray_only_the_worst_off_losses_must_not_rise():
    f, r = np.array([1.0, 1.0, 2.0]), np.array([0.5, 0.3, 0.1])
    bounds = _balance_bounds(f, r, np.array([0.1, 0.2, -0.3]))
    assert bounds.tolist() == [0.0, -np.inf, -0.3]
    assert _balance_bounds(f, r, np.array([0.0, -0.1, -0.3])).tolist() == [0.0, 0.0, 0.0]


def test_on_the_ray_all_losses_fall():
    """The sum of all gains is largest where no loss rises."""
    gradients = torch.tensor([[1.0, 0.5, 0.0], [0.2, 1.0, 0.3], [0.0, 0.1, 2.0]]).double()
    gram = gradients @ gradients.T
    weights = epo_weights(torch.tensor([1.0, 2.0, 4.0]).double() / 7, gram, _ray([4.0, 2.0, 1.0]))
    assert (gram @ weights).min() > -1e-9
    corners = [(gram @ corner).sum() for corner in torch.eye(3).double()]
    assert (gram @ weights).sum() == pytest.approx(float(max(corners)))


def _ray(numbers):
    return torch.tensor(numbers).double() / sum(numbers)


def test_where_no_weights_keep_the_bounds_the_preference_is_followed(monkeypatch):
    monkeypatch.setattr("lorpman.rules.epo_solver.solve_on_simplex", lambda *_: None)
    weights = epo_weights(torch.ones(3), torch.eye(3), torch.tensor([0.5, 0.3, 0.2]))
    torch.testing.assert_close(weights, torch.tensor([0.5, 0.3, 0.2]))


@pytest.mark.parametrize(("bound", "expected"), [(0.5, [1.0, 0.0]), (2.0, None)])
def test_a_row_that_does_not_tell_the_weights_apart(bound, expected):
    found = solve_on_simplex(np.array([1.0, 0.0]), np.ones((1, 2)), np.array([bound]))
    assert found is None if expected is None else found.tolist() == expected


def test_the_only_weight_of_one_task_is_one():
    assert solve_on_simplex(np.array([-1.0]), np.ones((1, 1)), np.array([0.0])).tolist() == [1.0]
