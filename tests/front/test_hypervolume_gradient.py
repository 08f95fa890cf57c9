import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lorpman import hypervolume, hypervolume_gradient
from lorpman.front.hypervolume_gradient import hypervolume_weights


def _finite_differences(points, reference, step=1e-6):
    result = torch.zeros_like(points)
    for j in range(points.shape[0]):
        for i in range(points.shape[1]):
            up, down = points.clone(), points.clone()
            up[j, i] += step
            down[j, i] -= step
            values = [float(hypervolume(p, reference, maximise=False)) for p in (up, down)]
            result[j, i] = (values[0] - values[1]) / (2 * step)
    return result


def _front(n, m, seed):
    """Points of a sphere, so that none dominates another; some lie outside the reference of 1."""
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(n, m, generator=generator, dtype=torch.float64)
    return 1.02 * points / points.norm(dim=1, keepdim=True)


def test_the_worked_case():
    points = torch.tensor([[0.5, 1.5], [1.5, 0.5]])
    assert float(hypervolume(points, 2.0, maximise=False)) == pytest.approx(1.25)
    expected = torch.tensor([[-0.5, -1.0], [-1.0, -0.5]])
    torch.testing.assert_close(hypervolume_gradient(points, 2.0), expected)
    weights = torch.tensor([[0.4472, 0.8944], [0.8944, 0.4472]])
    torch.testing.assert_close(hypervolume_weights(points, 2.0), weights, atol=1e-4, rtol=0)


@given(seed=st.integers(0, 1000), n=st.integers(1, 9))
def test_two_objectives_are_the_steps_of_the_staircase(seed, n):
    points = _front(n, 2, seed)
    gradient = hypervolume_gradient(points, 1.0)
    inside = (points < 1).all(1)
    order = [j for j in points[:, 0].argsort().tolist() if inside[j]]
    for place, j in enumerate(order):
        before = 1.0 if place == 0 else points[order[place - 1], 1]
        after = 1.0 if place + 1 == len(order) else points[order[place + 1], 0]
        expected = -torch.tensor([before - points[j, 1], after - points[j, 0]]).double()
        torch.testing.assert_close(gradient[j], expected)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_finite_differences(m, seed):
    points = _front(7 if m > 1 else 1, m, seed) * (0.5 if m == 1 else 1.0)
    expected = _finite_differences(points, 1.0)
    torch.testing.assert_close(hypervolume_gradient(points, 1.0), expected, atol=1e-6, rtol=1e-4)


def test_it_agrees_with_finite_differences_for_many_objectives():
    points = _front(4, 12, 0)
    expected = _finite_differences(points, 1.0)
    torch.testing.assert_close(hypervolume_gradient(points, 1.0), expected, atol=1e-6, rtol=1e-3)


def test_dominated_and_outside_points_have_no_gradient():
    points = torch.tensor([[0.5, 0.5], [0.6, 0.6], [0.1, 1.0], [0.2, 1.5]])
    gradient = hypervolume_gradient(points, 1.0)
    torch.testing.assert_close(gradient[0], torch.tensor([-0.5, -0.5]))
    assert (gradient[1:] == 0).all()


def test_equal_points_share_a_gradient():
    points = torch.tensor([[0.5, 1.5], [1.5, 0.5], [0.5, 1.5]])
    gradient = hypervolume_gradient(points, 2.0)
    assert torch.equal(gradient[0], gradient[2])
    torch.testing.assert_close(gradient[0], torch.tensor([-0.5, -1.0]))


def test_a_shared_coordinate_takes_the_gradient_towards_more_loss():
    points = torch.tensor([[0.5, 0.2, 0.8], [0.5, 0.8, 0.2]]).double()
    found = hypervolume_gradient(points, 1.0)
    moved = points.clone()
    moved[0, 0] += 1e-6
    change = hypervolume(moved, 1.0, maximise=False) - hypervolume(points, 1.0, maximise=False)
    assert found[0, 0].item() == pytest.approx(change / 1e-6, rel=1e-3)


def test_weights_draw_dominated_fronts_forward_too():
    losses = torch.tensor([[0.5, 1.5], [1.5, 0.5], [0.7, 1.7], [1.7, 0.7], [1.8, 1.8]])
    weights = hypervolume_weights(losses, 2.0)
    torch.testing.assert_close(weights.norm(dim=1), torch.ones(5))
    assert (weights >= 0).all()
    torch.testing.assert_close(weights[4], torch.full((2,), 0.5**0.5))


def test_the_reference_moves_out_with_the_losses():
    losses = torch.tensor([[50.0, 150.0], [150.0, 50.0]])
    weights = hypervolume_weights(losses, 2.0)
    assert (weights > 0).all()


@given(seed=st.integers(0, 1000), m=st.integers(2, 4), n=st.integers(1, 16))
def test_weights_are_unit_rows(seed, m, n):
    generator = torch.Generator().manual_seed(seed)
    weights = hypervolume_weights(3 * torch.rand(n, m, generator=generator), [2.0] * m)
    norms = weights.norm(dim=1)
    assert ((norms - 1).abs().lt(1e-5) | norms.eq(0)).all()
