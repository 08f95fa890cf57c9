import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lorpman as lp
from lorpman.rules.cagrad import cagrad_weights
from properties import assert_permutation_equivariant
from rules.small import close, gram_of, random_gram, row_of, spread_gram


def _direction(weights, rows):
    return weights @ torch.tensor(rows, dtype=torch.float64)


def test_cagrad():
    rows = [[1.0, 0.0], [0.0, 1.0]]
    weights = cagrad_weights(gram_of(rows), 0.5)
    close(_direction(weights, rows), [0.75, 0.75])
    close(_direction(weights / 1.25, rows), [0.6, 0.6])
    rows = [[3.0, 0.0], [-1.0, 1.0]]
    close(_direction(cagrad_weights(gram_of(rows), 0.5), rows), [0.60472, 0.89528])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"c": 0.5}, 0.75 / 1.25),
        ({"c": 0.5, "rescale": False}, 0.75),
        # c = 0.4: the mean (0.5, 0.5) and 0.4 times its length along itself, over 1 + 0.16.
        ({}, 0.7 / 1.16),
    ],
)
def test_the_direction_is_divided_by_one_and_the_square_of_c(options, expected):
    rule = lp.rules.CAGrad(**options)
    weights = rule.weights(row_of(torch.eye(2)))
    close(weights, [expected] * 2, 1e-6)
    assert rule.head_weights(weights).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("c", [-0.1, 1.0, math.nan])
def test_a_radius_out_of_range_is_refused(c):
    with pytest.raises(lp.UsageError, match="at least 0 and below 1"):
        lp.rules.CAGrad(c)
    assert lp.rules.CAGrad(0.0).c == 0.0


def test_cagrad_without_c_is_the_mean():
    close(cagrad_weights(random_gram(4), 0.0), [0.25] * 4)


def test_cagrad_at_a_stationary_point_is_finite():
    assert cagrad_weights(gram_of([[1.0, 0.0], [-1.0, 0.0]]), 0.4).isfinite().all()
    assert cagrad_weights(gram_of([[2.0, 0.0], [-1.0, 0.0]]), 0.4).isfinite().all()


def test_cagrad_descends_for_the_worst_off_more_than_the_mean():
    gram = random_gram(6, shift=-0.6)
    even = torch.full((6,), 1 / 6).double()
    assert (gram @ cagrad_weights(gram, 0.5)).min() > (gram @ even).min()


@given(st.integers(0, 10**6), st.integers(2, 20), st.floats(0.05, 0.9))
def test_cagrad_stays_at_its_distance_and_is_best_there(seed, m, c):
    gram = spread_gram(seed, m, 3 * m, 0.3)
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


@pytest.mark.parametrize("m", [2, 5, 40])
def test_renumbering_tasks_changes_nothing(m):
    assert_permutation_equivariant(lambda k: cagrad_weights(k, 0.4), random_gram(m))
