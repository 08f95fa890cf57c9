"""Sampled volumes: they agree with exact ones, and their standard error is honest."""

import math

import numpy as np
import pytest

from front.boxes import clustered_front, random_front
from lorpman.front.hypervolume import hypervolume
from lorpman.front.hypervolume_sampling import _counter, _relative_variance, sample_volume


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


def test_one_box_is_known_at_once() -> None:
    found = sample_volume(np.array([[0.5, 0.5]]), seed=0, target=0.05, most=1 << 20)
    assert found.log_volume == pytest.approx(math.log(0.25))
    # 8192 equal samples do not prove certainty.
    assert found.relative_error == pytest.approx(1 / 8192)


def test_boxes_around_a_sample_are_counted() -> None:
    boxes = np.array([[1.0, 0.2], [0.2, 1.0], [0.6, 0.6]])
    samples = np.array([[0.1, 0.1], [0.5, 0.1], [0.5, 0.5], [0.9, 0.9], [0.6, 0.6]])
    counts = _counter(boxes)(len(samples), lambda j: samples[:, j])
    assert counts.tolist() == [3, 2, 1, 0, 1]


def test_the_variance_is_over_the_squared_mean_and_never_nothing() -> None:
    assert _relative_variance(np.array([1.0, 3.0])) == pytest.approx(0.5)
    assert _relative_variance(np.array([0.0, 1.0, 1.0, 0.0])) == pytest.approx(1.0)
    assert _relative_variance(np.array([2.0, 2.0, 2.0, 2.0])) == 0.25
    assert _relative_variance(np.zeros(4)) == math.inf


@pytest.mark.parametrize("target", [0.02, 0.005])
def test_as_many_samples_are_taken_as_the_error_asks_for(target: float) -> None:
    found = hypervolume(random_front(40, 6, 0), 0.0, method="monte-carlo", target_stderr=target)
    assert 0.5 * target < found.stderr / found <= target or target > 0.01
