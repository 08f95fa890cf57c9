"""Every small problem is solved to its optimality conditions."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lorpman.rules import solvers
from lorpman.rules.solvers import (
    SolverFailed,
    divided_by_trace,
    kkt_gap,
    min_norm,
    nonnegative_qp,
    project_simplex,
    root_of_increasing,
)
from properties import assert_min_norm_is_optimal
from rules.small import spread_gram


@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 60), st.floats(0, 2))
def test_min_norm_satisfies_kkt(seed, m, size, spread):
    gram = spread_gram(seed, m, size, spread)
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
    gram = spread_gram(seed, m, 2 * m, 0.3)
    linear = torch.randn(m, generator=torch.Generator().manual_seed(seed)).double()
    x = nonnegative_qp(gram, linear)
    slope = (gram @ x - linear) / gram.diagonal().sum()
    assert (x >= 0).all()
    assert slope.min() > -1e-6
    assert (slope * x).abs().max() < 1e-6 * (1 + x.max())


def test_projection_onto_the_simplex():
    points = torch.randn(50, 7)
    projected = project_simplex(points)
    torch.testing.assert_close(projected.sum(1), torch.ones(50))
    assert (projected >= 0).all()
    # Nearest: the way back makes an obtuse angle with the way to every corner.
    towards = torch.eye(7)[None] - projected[:, None]
    assert ((points - projected)[:, None] * towards).sum(-1).max() < 1e-5


def test_the_trace_is_divided_out():
    gram = torch.tensor([[3.0, 1.0], [1.0, 5.0]])
    assert divided_by_trace(gram).tolist() == [[0.375, 0.125], [0.125, 0.625]]
    assert divided_by_trace(torch.zeros(2, 2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_gap_is_how_much_the_worst_slope_is_below_the_mean():
    assert kkt_gap(np.eye(2), np.array([1.0, 0.0])) == 1.0
    assert kkt_gap(np.diag([4.0, 1.0]), np.array([0.2, 0.8])) == pytest.approx(0.0, abs=1e-12)


def test_one_gradient_has_all_the_weight():
    assert min_norm(torch.tensor([[3.0]])).tolist() == [1.0]


@pytest.mark.parametrize("m", [2, 12, 40])
def test_where_the_active_set_gives_up_descent_finds_the_min_norm(monkeypatch, m):
    monkeypatch.setattr(solvers, "_nnls", lambda matrix, target: np.zeros(matrix.shape[1]))
    gram = spread_gram(m, m, 2 * m, 0.3)
    assert_min_norm_is_optimal(gram, min_norm(gram))


def test_an_answer_that_is_not_optimal_is_refused(monkeypatch):
    monkeypatch.setattr(solvers, "_nnls", lambda matrix, target: np.zeros(matrix.shape[1]))
    monkeypatch.setattr(solvers, "_descend", lambda K, weights: weights)
    with pytest.raises(SolverFailed, match="min-norm problem of 2 gradients"):
        min_norm(torch.diag(torch.tensor([4.0, 1.0])))
    with pytest.raises(SolverFailed, match="non-negative QP of 2 variables"):
        nonnegative_qp(torch.eye(2), torch.ones(2))


def test_a_solver_that_stops_early_gives_zeros(monkeypatch):
    def stop(*_, **__):
        raise RuntimeError("maximum number of iterations")

    monkeypatch.setattr("scipy.optimize.nnls", stop)
    assert solvers._nnls(np.eye(3), np.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_a_root_inside_the_bracket_and_its_ends():
    assert root_of_increasing(lambda x: x - 0.3, 0.0, 1.0) == pytest.approx(0.3, abs=1e-11)
    assert root_of_increasing(lambda x: x + 1, 0.0, 1.0) == 0.0
    assert root_of_increasing(lambda x: x - 2, 0.0, 1.0) == 1.0
