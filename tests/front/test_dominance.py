"""Dominance: the mask is its definition, and gains are turned by each objective's direction."""

import math

import numpy as np
import pytest
import torch

from lorpman.errors import UsageError
from lorpman.front.dominance import gains_over, non_dominated_mask


@pytest.mark.parametrize("m", [2, 5, 40, 300])
def test_mask_is_the_definition_of_dominance(m: int) -> None:
    rng = np.random.default_rng(m)
    points = rng.integers(0, 3, size=(30, m)).astype(float)
    points[10:20] = points[:10] - rng.integers(0, 2, size=(10, m))
    points[20:25] = points[0]
    points[:, 0] *= -1  # the first objective is minimised
    up = points * np.array([-1.0] + [1.0] * (m - 1))
    expected = [not any((q >= p).all() and (q > p).any() for q in up) for p in up]
    assert non_dominated_mask(points, [False] + [True] * (m - 1)).tolist() == expected


def test_mask_keeps_copies_and_accepts_nothing() -> None:
    assert non_dominated_mask([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0]]).tolist() == [True, True, False]
    assert non_dominated_mask(torch.zeros(0, 2)).tolist() == []


def test_gains_are_differences_turned_so_that_bigger_is_better() -> None:
    gains = gains_over([[0.25, 0.75]], [0.5, 0.5], [False, True])
    assert gains.tolist() == [[0.25, 0.25]]
    assert gains_over([[1.0, 2.0]], 3.0, False).tolist() == [[2.0, 1.0]]
    assert gains_over(torch.zeros(0, 3), 0.0, True).shape == (0, 1)


def test_a_difference_that_overflows_is_refused() -> None:
    with pytest.raises(UsageError, match="row 1 of points minus reference"):
        gains_over([[0.0], [1.7e308]], -1.7e308, True)
    with pytest.raises(UsageError, match="must be finite"):
        non_dominated_mask([[math.nan]])
