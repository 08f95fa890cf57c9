"""Is alpha obeyed: rank correlation and violations, against scipy and by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

import lorpman as lp
from lorpman.front.order import order

ALPHAS = lp.grid(2, 5)


def _front(scores, maximise=(True, True)):
    return lp.Front(ALPHAS, torch.as_tensor(scores), ("a", "b"), maximise, (0.0, 0.0))


def test_a_front_that_follows_its_preferences():
    found = _front(ALPHAS.double()).order()
    assert found.correlations == (1.0, 1.0)
    assert (found.violations, found.pairs) == (0, 20)


def test_a_front_that_is_turned_round():
    found = _front(1 - ALPHAS.double()).order()
    assert (found.correlation, found.violations) == (-1.0, 20)


def test_orientation_is_the_tasks():
    """Where less is better, more weight must give less."""
    assert _front(1 - ALPHAS.double(), (False, False)).order().correlation == 1.0
    assert _front(ALPHAS.double() * torch.tensor([1, -1]), (True, False)).order().violations == 0


def test_one_network_for_all_preferences_has_no_order_and_breaks_none():
    found = _front(torch.ones(5, 2)).order()
    assert (found.correlation, found.violations) == (0.0, 0)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=3, max_size=12))
def test_the_correlation_is_spearmans(values):
    alphas, gains = torch.tensor(values, dtype=torch.float64).T[:, :, None]
    (found,) = order(alphas, gains).correlations
    if len(set(alphas.flatten().tolist())) == 1 or len(set(gains.flatten().tolist())) == 1:
        assert found == 0.0
    else:
        assert found == pytest.approx(spearmanr(alphas.flatten(), gains.flatten()).statistic)
