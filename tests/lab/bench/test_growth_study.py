"""Time and memory of a step grow as the formulas say."""

import pytest

from lorpman.lab.bench import growth_study, timing
from lorpman.lab.bench.timing import Conditions


@pytest.fixture
def tiny_growth(monkeypatch):
    monkeypatch.setattr(growth_study, "_WIDTH", 16)
    monkeypatch.setattr(growth_study, "_BATCH", 4)
    monkeypatch.setattr(growth_study, "AXES", {"m": (2, 3, 4), "r": (1, 2), "b": (1, 2)})
    monkeypatch.setattr(growth_study, "BASE", {"m": 2, "r": 2, "b": 2})
    monkeypatch.setattr(timing, "_SHORTEST_TURN", 0.0)
    return growth_study.growth(Conditions(threads=1, quick=True))


def test_growth_measures_along_every_axis(tiny_growth):
    assert [point["m"] for point in tiny_growth["axes"]["m"]] == [2, 4]
    for point in tiny_growth["axes"]["b"]:
        assert point["bytes"] > 0
        assert point["seconds"] > 0
    assert "| b | 1 | " in growth_study.markdown(tiny_growth)


def test_what_lies_above_the_formula_is_named():
    points = [
        {"m": 2, "seconds": 1.0, "expected seconds": 1.0},
        {"m": 5, "seconds": 2.0, "expected seconds": 1.0},
    ]
    assert [p["m"] for p in growth_study.above(points, "seconds")] == [5]


def test_memory_by_the_formula_grows_with_each_axis():
    base = growth_study.expected_bytes(**growth_study.BASE)
    for axis, value in growth_study.BASE.items():
        assert growth_study.expected_bytes(**{**growth_study.BASE, axis: 2 * value}) > base
