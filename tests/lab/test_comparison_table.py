import json
from dataclasses import replace

import pytest

from lorpman.lab.comparison_table import Comparison, MethodResults

PAMAL = MethodResults(
    method="pamal",
    seeds=(0, 1),
    hypervolumes=(0.8, 0.9),
    sampling_error=0.0,
    parameters=5836,
    seconds_per_epoch=1.25,
    epochs=2,
    peak_memory=300 * 2**20,
    order=0.5,
    violations=3,
    pairs=220,
    published=0.95,
    runs=("pamal-0", "pamal-1"),
)
PMTL = replace(PAMAL, method="pmtl", order=None, violations=0, pairs=0, published=None)


def _comparison(*rows, **others):
    given = {"recipe": None, "note": "", "failures": {}, **others}
    return Comparison(problem="multidigits", scale="paper", rows=rows, **given)


def test_mean_and_deviation_are_over_the_seeds():
    assert PAMAL.mean == pytest.approx(0.85)
    assert PAMAL.deviation == pytest.approx(0.1 / 2**0.5)
    assert replace(PAMAL, seeds=(0,), hypervolumes=(0.8,)).deviation is None


def test_a_row_shows_what_there_is_and_leaves_the_rest_empty():
    lines = _comparison(PAMAL, PMTL).markdown().splitlines()
    rest = "5,836 | 2 | 1.25 | 300 MiB |"
    assert lines[2] == f"| pamal | 0.8500 ± 0.071 | 0.9500 | 0.50 | 3 of 220 | {rest}"
    assert lines[3] == f"| pmtl | 0.8500 ± 0.071 |  |  |  | {rest}"
    assert all(line.count("|") == lines[0].count("|") for line in lines[:4])


def test_a_row_with_fewer_seeds_says_so():
    fewer = replace(PMTL, seeds=(1,), hypervolumes=(0.9,))
    text = _comparison(PAMAL, fewer).markdown()
    assert "| pmtl | 0.9000 (seed 1 only) |" in text
    assert "mean ± standard deviation of seeds 0, 1;" in text
    assert "only" not in _comparison(PAMAL, PMTL).markdown()


def test_tiny_hypervolumes_keep_their_digits():
    tiny = replace(PAMAL, hypervolumes=(0.000181, 0.000181))
    assert "| 0.000181 ± 0 |" in _comparison(tiny).markdown()


def test_the_caption_tells_recipe_sampling_and_data():
    sampled = replace(PMTL, sampling_error=0.002)
    text = _comparison(sampled, recipe="best", note="Half of the data.").markdown()
    assert "multidigits, paper scale, recipe best, test split" in text
    assert "standard error of 0.002 or less. Half of the data." in text
    assert "Order:" not in text
    assert "Order:" in _comparison(PAMAL).markdown()


def test_failures_are_told_below_the_table():
    text = _comparison(PAMAL, failures={"phn-0": "too large"}).markdown()
    assert text.endswith("- phn-0: too large\n")


def test_json_holds_the_derived_values_too():
    written = json.loads(json.dumps(_comparison(PAMAL, PMTL).to_json()))
    assert written["rows"][0]["mean"] == PAMAL.mean
    assert written["rows"][1]["deviation"] == PMTL.deviation
    assert written["problem"] == "multidigits"
