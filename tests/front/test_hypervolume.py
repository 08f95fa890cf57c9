"""Hypervolume: known values, the invariants that define it, and sampling against exact."""

import json
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lorpman.errors import UsageError
from lorpman.front.dominance import non_dominated_mask
from lorpman.front.hypervolume import Hypervolume, hypervolume
from properties import assert_dominated_points_do_not_count, assert_hypervolume_never_falls

Floats = NDArray[np.float64]


def random_front(n: int, m: int, seed: int) -> Floats:
    """Points on a sphere, pulled towards its middle: no point dominates another."""
    x = 0.5 + np.abs(np.random.default_rng(seed).normal(size=(n, m)))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def clustered_front(n: int, m: int, seed: int) -> Floats:
    """Accuracies as of a trained family: tasks differ a lot, points of the front a little."""
    rng = np.random.default_rng(seed)
    return (0.6 + 0.35 * rng.random(m)) * (0.93 + 0.07 * rng.random((n, m)))


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


# Sampling.


@pytest.mark.parametrize("m", range(2, 9))
@pytest.mark.parametrize("make", [random_front, clustered_front])
def test_sampling_agrees_with_exact(m: int, make: object) -> None:
    points = make(40, m, seed=m)  # type: ignore[operator]
    exact = hypervolume(points, 0.0, method="exact")
    for seed in range(3):
        sampled = hypervolume(points, 0.0, method="monte-carlo", seed=seed, target_stderr=3e-3)
        assert exact.method == "exact"
        assert 0 < sampled.stderr <= 3e-3 * sampled
        assert abs(sampled - exact) <= 3 * sampled.stderr


def test_the_standard_error_is_honest() -> None:
    points = clustered_front(20, 6, seed=1)
    exact = hypervolume(points, 0.0, method="exact")
    errors = []
    for seed in range(60):
        got = hypervolume(points, 0.0, method="monte-carlo", seed=seed, target_stderr=0.01)
        errors.append((got - exact) / got.stderr)
    assert 0.7 < math.sqrt(np.square(errors).mean()) < 1.3


def test_both_estimators_are_used_where_each_is_better() -> None:
    crowded = hypervolume(clustered_front(40, 8, seed=0), 0.0, method="monte-carlo")
    spread = hypervolume(np.random.default_rng(0).dirichlet(np.ones(20), size=50), 0.0)
    assert crowded.method == "monte-carlo: box"
    assert spread.method == "monte-carlo: union"


@pytest.mark.parametrize("m", [20, 40])
def test_many_objectives_agree_with_inclusion_exclusion(m: int) -> None:
    points = clustered_front(14, m, seed=2)
    exact, sampled = hypervolume(points, 0.0), hypervolume(points, 0.0, method="monte-carlo")
    assert exact.method == "exact"
    assert abs(sampled - exact) <= 3 * sampled.stderr


def test_hundred_points_with_forty_objectives_are_sampled_to_a_thousandth() -> None:
    found = hypervolume(clustered_front(100, 40, seed=0), 0.0)
    assert 0 < found.stderr <= 1e-3 * found


def test_a_seed_fixes_the_number_whatever_the_order_of_points() -> None:
    points = clustered_front(30, 12, seed=0)
    first = hypervolume(points, 0.0, seed=1, target_stderr=0.01)
    assert first.stderr > 0
    assert tuple(hypervolume(points[::-1], 0.0, seed=1, target_stderr=0.01)) == tuple(first)
    assert hypervolume(points, 0.0, seed=2, target_stderr=0.01) != first


def test_more_than_64_points_use_every_word_of_the_bit_sets() -> None:
    points = random_front(150, 4, seed=0)
    exact = hypervolume(points, 0.0)
    sampled = hypervolume(points, 0.0, method="monte-carlo", target_stderr=3e-3)
    assert abs(sampled - exact) <= 3 * sampled.stderr


def test_a_limit_on_samples_shows_in_the_standard_error() -> None:
    points = random_front(100, 12, seed=0)
    rough, fine = hypervolume(points, 0.0, max_samples=1), hypervolume(points, 0.0)
    assert rough.stderr > 2e-3 * rough
    assert abs(rough - fine) <= 3 * rough.stderr


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


# Dominance.


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
