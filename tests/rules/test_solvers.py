"""Every small problem is solved to its optimality conditions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lorpman.rules.cagrad import cagrad_weights
from lorpman.rules.nash_mtl import nash_weights
from lorpman.rules.solvers import min_norm, nonnegative_qp, project_simplex
from properties import assert_min_norm_is_optimal


def _gram(seed, m, size, spread=1.0):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(m, size, generator=generator, dtype=torch.float64)
    rows *= 10 ** (spread * torch.randn(m, 1, generator=generator, dtype=torch.float64))
    return rows @ rows.T


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 60), st.floats(0, 2))
def test_min_norm_satisfies_kkt(seed, m, size, spread):
    gram = _gram(seed, m, size, spread)
    assert_min_norm_is_optimal(gram, min_norm(gram))


def test_min_norm_of_two():
    gram = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    torch.testing.assert_close(min_norm(gram), torch.tensor([0.2, 0.8]).double())


@pytest.mark.parametrize("gram", [torch.zeros(3, 3), torch.ones(3, 3), torch.eye(3)])
def test_min_norm_of_equal_or_no_gradients(gram):
    weights = min_norm(gram)
    assert weights.sum().item() == pytest.approx(1)
    assert_min_norm_is_optimal(gram.double(), weights)


@given(st.integers(0, 10**6), st.integers(1, 40))
def test_nonnegative_qp_satisfies_kkt(seed, m):
    gram = _gram(seed, m, 2 * m, 0.3)
    linear = torch.randn(m, generator=torch.Generator().manual_seed(seed)).double()
    x = nonnegative_qp(gram, linear)
    slope = (gram @ x - linear) / gram.diagonal().sum()
    assert (x >= 0).all()
    assert slope.min() > -1e-6
    assert (slope * x).abs().max() < 1e-6 * (1 + x.max())


@given(st.integers(0, 10**6), st.integers(2, 40))
def test_nash_is_the_bargain(seed, m):
    gram = _gram(seed, m, 3 * m)
    w = nash_weights(gram)
    assert (w > 0).all()
    torch.testing.assert_close(w * (gram @ w), torch.ones(m).double(), atol=1e-4, rtol=0)


@given(st.integers(0, 10**6), st.integers(2, 20), st.floats(0.05, 0.9))
def test_cagrad_stays_at_its_distance_and_is_best_there(seed, m, c):
    gram = _gram(seed, m, 3 * m, 0.3)
    w = cagrad_weights(gram, c)
    even = torch.full((m,), 1 / m, dtype=torch.float64)
    off = w - even
    distance, length = (off @ gram @ off).sqrt(), (even @ gram @ even).sqrt()
    torch.testing.assert_close(distance, c * length, atol=0, rtol=1e-5)
    worst = (gram @ w).min()
    for _ in range(20):
        other = torch.randn(m, generator=torch.Generator().manual_seed(seed)).double()
        other *= c * length / (other @ gram @ other).sqrt()
        assert (gram @ (even + other)).min() <= worst + 1e-6 * length**2


def test_projection_onto_the_simplex():
    points = torch.randn(50, 7)
    projected = project_simplex(points)
    torch.testing.assert_close(projected.sum(1), torch.ones(50))
    assert (projected >= 0).all()
    # Nearest: the way back makes an obtuse angle with the way to every corner.
    towards = torch.eye(7)[None] - projected[:, None]
    assert ((points - projected)[:, None] * towards).sum(-1).max() < 1e-5
