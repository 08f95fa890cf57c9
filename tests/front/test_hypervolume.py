"""Hypervolume: known values, the invariants that define it, and sampling against exact."""

import json
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from front.boxes import Floats, clustered_front
from lorpman.errors import UsageError
from lorpman.front.hypervolume import Hypervolume, hypervolume
from properties import assert_dominated_points_do_not_count, assert_hypervolume_never_falls


@st.composite
def fronts(draw: st.DrawFn) -> Floats:
    n, m = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    values = st.integers(-3, 20).map(lambda k: k / 20)
    rows = draw(st.lists(st.lists(values, min_size=m, max_size=m), min_size=n, max_size=n))
    return np.array(rows)


# Known values.


def test_one_point_is_its_box() -> None:
    assert hypervolume([[0.9, 0.9]], 0.0) == pytest.approx(0.81, abs=0)


def test_two_minimised_points() -> None:
    assert hypervolume([[0.5, 1.5], [1.5, 0.5]], [2.0, 2.0], maximise=False) == 1.25


def test_mixed_directions_orient_each_task() -> None:
    points = torch.tensor([[0.1, 0.9, 0.8]], dtype=torch.float64)  # a loss, two accuracies
    found = hypervolume(points, [0.5, 0.0, 0.0], maximise=[False, True, True])
    assert found == pytest.approx(0.4 * 0.9 * 0.8)


@pytest.mark.parametrize("points", [[], torch.zeros(0, 3), [[0.5, 0.0]], [[-1.0, 2.0]]])
def test_nothing_better_than_the_reference_is_zero(points: object) -> None:
    assert tuple(hypervolume(points, 0.0)) == (0.0, 0.0, "exact")  # type: ignore[arg-type]


def test_tiny_volumes_do_not_underflow() -> None:
    tiny = 1e-7 * clustered_front(30, 40, seed=0)  # about 1e-283
    assert hypervolume(tiny, 0.0) == pytest.approx(1e-280 * hypervolume(tiny * 1e7, 0.0), rel=0.01)
    passes_through_zero = [[1e-200, 1e-200, 1e200, 1e200]]
    assert hypervolume(passes_through_zero, 0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("size", [1e-9, 1e9])
@pytest.mark.parametrize("n", [1, 30])
def test_a_volume_no_float_holds_is_refused(size: float, n: int) -> None:
    with pytest.raises(UsageError, match="rescale the scores"):
        hypervolume(size * clustered_front(n, 40, seed=0), 0.0)


# What defines a hypervolume.


@given(fronts(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_permuting_points_and_tasks_changes_nothing(points: Floats, random: object) -> None:
    rows, columns = list(range(points.shape[0])), list(range(points.shape[1]))
    random.shuffle(rows)  # type: ignore[attr-defined]
    random.shuffle(columns)  # type: ignore[attr-defined]
    again = hypervolume(points[rows][:, columns], 0.0)
    assert again == pytest.approx(hypervolume(points, 0.0), rel=1e-12, abs=0)


@given(fronts(), st.data())
@settings(max_examples=60, deadline=None)
def test_adding_a_point_never_lowers_it(points: Floats, data: st.DataObject) -> None:
    m = points.shape[1]
    new = data.draw(st.lists(st.floats(-1, 2, width=16), min_size=m, max_size=m))
    assert_hypervolume_never_falls(torch.from_numpy(points), torch.tensor([new]).double(), 0.0)


@given(fronts(), st.integers(0, 11), st.floats(0, 0.5))
@settings(max_examples=60, deadline=None)
def test_dominated_points_and_copies_are_ignored(points: Floats, i: int, less: float) -> None:
    worse = torch.from_numpy(points[i % len(points)] - less)
    assert_dominated_points_do_not_count(torch.from_numpy(points), worse[None], 0.0)


@given(fronts())
@settings(max_examples=60, deadline=None)
def test_exact_is_the_volume_of_the_cells_that_are_covered(points: Floats) -> None:
    grid = points[: 12 if points.shape[1] < 4 else 5].clip(0.0)
    cuts = [np.unique([0.0, *grid[:, j]]) for j in range(grid.shape[1])]
    upper = np.stack(np.meshgrid(*[c[1:] for c in cuts], indexing="ij"), -1).reshape(-1, len(cuts))
    sides = np.stack(np.meshgrid(*[np.diff(c) for c in cuts], indexing="ij"), -1)
    covered = (upper[:, None] <= grid).all(-1).any(-1)
    expected = sides.reshape(-1, len(cuts)).prod(-1)[covered].sum()
    assert hypervolume(grid, 0.0) == pytest.approx(expected, rel=1e-9)


# The result.


def test_the_result_is_a_float_that_unpacks() -> None:
    assert hypervolume([[0.9, 0.9]], 0.0)[2] == "exact"
    volume = Hypervolume(0.5, 0.25, "monte-carlo: box")
    value, stderr, method = volume
    assert (value, stderr, method) == (0.5, 0.25, "monte-carlo: box")
    assert json.dumps(volume) == "0.5"
    assert f"{volume:.3f} {volume}" == "0.500 0.5"
    assert repr(volume) == "Hypervolume(0.5 ± 0.25, monte-carlo: box)"
    assert tuple(pickle.loads(pickle.dumps(volume))) == tuple(volume)


# Bad input.


@pytest.mark.parametrize(
    ("points", "reference", "maximise", "message"),
    [
        ([[], []], 0.0, True, r"shape \[n, m\], got \[2, 0\]"),
        ([0.9, 0.9], 0.0, True, r"shape \[n, m\], got \[2\]"),
        ([[0.9, math.nan]], 0.0, True, "must be finite, but row 0"),
        ([[0.9, 0.5], [math.inf, 0.1]], 0.0, True, "must be finite, but row 1"),
        ([[0.9, 0.9]], math.nan, True, "must be finite"),
        ([[0.9, 0.9]], [0.0, 0.0, 0.0], True, r"reference must hold one value or 2"),
        ([[0.9, 0.9]], 0.0, [True], r"maximise must hold one value or 2"),
        ([[0.9], [0.9, 0.1]], 0.0, True, "points must be a table of numbers"),
        ([["a", "b"]], 0.0, True, "points must be a table of numbers"),
    ],
)
def test_bad_input_is_one_clear_line(
    points: object, reference: object, maximise: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        hypervolume(points, reference, maximise)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_bad_options_are_refused() -> None:
    with pytest.raises(UsageError, match="'auto', 'exact' or 'monte-carlo'"):
        hypervolume([[1.0]], 0.0, method="exakt")
    with pytest.raises(UsageError, match="must be positive"):
        hypervolume([[1.0]], 0.0, target_stderr=0.0)
    with pytest.raises(UsageError, match="exact stops at 31 objectives"):
        hypervolume(clustered_front(20, 40, seed=0), 0.0, method="exact")


# Which way is taken.


@pytest.mark.parametrize(
    ("n", "m", "method"),
    [(16, 20, "exact"), (17, 20, "monte-carlo"), (24, 12, "exact"), (25, 12, "monte-carlo")],
)
def test_exact_is_chosen_where_it_is_quick(n: int, m: int, method: str) -> None:
    points = np.random.default_rng(0).dirichlet(np.ones(m), size=n)
    assert hypervolume(points, 0.0, target_stderr=0.05).method.startswith(method)


@pytest.mark.parametrize("m", [8, 9, 31])
def test_both_exact_ways_agree(m: int) -> None:
    """Up to 8 objectives moocore, beyond them inclusion and exclusion, for a few points."""
    points = clustered_front(5, m, seed=3)
    wider = np.concatenate([points, np.ones((5, 1))], axis=1)
    assert hypervolume(points, 0.0) == pytest.approx(float(hypervolume(wider, 0.0)), rel=1e-12)


def test_points_on_the_reference_do_not_count() -> None:
    assert hypervolume([[0.5, 1.0], [1.0, 2.0]], [0.5, 0.5]) == 0.75
    assert hypervolume([[0.5, 0.25], [0.5, 1.0]], [0.5, 0.0]) == 0.0


def test_at_least_one_sample_is_taken() -> None:
    with pytest.raises(UsageError, match=r"must be positive, got 0\.001 and 0"):
        hypervolume([[1.0]], 0.0, max_samples=0)


def test_the_size_of_a_volume_that_no_float_holds_is_told() -> None:
    with pytest.raises(UsageError, match=r"about 10\^-360"):
        hypervolume([[1e-9] * 40], 0.0)
