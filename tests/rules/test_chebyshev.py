import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lorpman import Chebyshev, SmoothChebyshev, UsageError, dirichlet


def test_chebyshev_is_the_largest_weighted_distance():
    alphas = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
    losses = torch.tensor([[2.0, 4.0], [3.0, 4.0]])
    assert Chebyshev()(alphas, losses, None).item() == pytest.approx(2.0 + 2.7)
    assert Chebyshev(ideal=[1.0, 3.0])(alphas, losses, None).item() == pytest.approx(0.5 + 1.8)
    with pytest.raises(UsageError, match="one number, or one per task"):
        Chebyshev(ideal=torch.tensor([[1.0], [3.0]]))


@given(mu=st.floats(1e-3, 1.0), seed=st.integers(0, 1000))
def test_smooth_chebyshev_bounds_chebyshev(mu, seed):
    torch.manual_seed(seed)
    alphas, losses, model = dirichlet(3, 4).double(), torch.rand(4, 3).double(), None
    gap = SmoothChebyshev(mu)(alphas, losses, model) - Chebyshev()(alphas, losses, model)
    assert -1e-9 <= gap <= 4 * mu * math.log(3) + 1e-9


def test_smooth_chebyshev_is_its_formula():
    alphas, losses = torch.tensor([[0.5, 0.5]]), torch.tensor([[3.0, 5.0]])
    value = SmoothChebyshev(smoothing=0.5, ideal=[1.0, 1.0])(alphas, losses, None).item()
    assert value == pytest.approx(0.5 * math.log(math.exp(1 / 0.5) + math.exp(2 / 0.5)))


def test_smoothing_is_positive_and_printed():
    with pytest.raises(UsageError, match="smoothing must be positive, got 0"):
        SmoothChebyshev(0.0)
    assert repr(SmoothChebyshev()) == "SmoothChebyshev(smoothing=0.1)"
