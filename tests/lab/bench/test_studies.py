"""The studies on tiny cases: what they look at, and the page that is made of them."""

import pytest

from lorpman.errors import UsageError
from lorpman.lab.bench import compile_and_bf16, growth, rivals, timing
from lorpman.lab.bench.performance_page import filled
from lorpman.lab.bench.pictures import draw_growth
from lorpman.lab.bench.timing import Conditions


@pytest.fixture
def tiny_growth(monkeypatch):
    monkeypatch.setattr(growth, "_WIDTH", 16)
    monkeypatch.setattr(growth, "_BATCH", 4)
    monkeypatch.setattr(growth, "AXES", {"m": (2, 3, 4), "r": (1, 2), "b": (1, 2)})
    monkeypatch.setattr(growth, "BASE", {"m": 2, "r": 2, "b": 2})
    monkeypatch.setattr(timing, "_SHORTEST_TURN", 0.0)
    return growth.growth(Conditions(threads=1, quick=True))


def test_growth_measures_along_every_axis(tiny_growth, tmp_path):
    assert [point["m"] for point in tiny_growth["axes"]["m"]] == [2, 4]
    for point in tiny_growth["axes"]["b"]:
        assert point["bytes"] > 0
        assert point["seconds"] > 0
    draw_growth(tiny_growth, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 1000
    assert "| b | 1 | " in growth.markdown(tiny_growth)


def test_what_lies_above_the_formula_is_named():
    points = [
        {"m": 2, "seconds": 1.0, "expected seconds": 1.0},
        {"m": 5, "seconds": 2.0, "expected seconds": 1.0},
    ]
    assert [p["m"] for p in growth.above(points, "seconds")] == [5]


def test_memory_by_the_formula_grows_with_each_axis():
    base = growth.expected_bytes(**growth.BASE)
    for axis, value in growth.BASE.items():
        assert growth.expected_bytes(**{**growth.BASE, axis: 2 * value}) > base


def test_the_rivals_table_has_a_line_for_each():
    found = {
        "methods": [{"method": "lorpman", "window": 4, "step": 2.8, "step per network": 0.7}],
        "our PaMaL by the straightforward one": 0.8,
    }
    text = rivals.markdown(found)
    assert "| lorpman | 4 | 2.80 | 0.70 | - |" in text
    assert "0.80" in text


def test_a_page_keeps_what_people_wrote():
    described = {
        "rows": [],
        "studies": [{"name": "growth", "status": "failed", "note": "broke", "found": {}}],
    }
    page = (
        "# Title\n<!-- bench: growth -->\nold\n<!-- end -->\n<!-- bench: rivals -->\n<!-- end -->"
    )
    assert filled(page, described) == (
        "# Title\n<!-- bench: growth -->\n\nbroke\n\n<!-- end -->\n"
        "<!-- bench: rivals -->\n\nNot part of this run.\n\n<!-- end -->"
    )
    with pytest.raises(UsageError, match="unknown part 'tables'"):
        filled("<!-- bench: tables -->\n<!-- end -->", described)


def test_a_switch_is_measured_against_the_step_without():
    found = compile_and_bf16.against_none(
        "Census MLP", {"precision": "64-true"}, Conditions(threads=1, quick=True)
    )
    assert found["ratio"] > 1
    assert len(found["rounds"]["none"]) == timing.QUICK_ROUNDS


def test_a_switch_that_fails_leaves_the_others():
    broken = compile_and_bf16.against_none(
        "Census MLP", {"precision": "3-true"}, Conditions(threads=1, quick=True)
    )
    steps = [
        {"network": "MLP", "switch": "bf16-mixed", **broken},
        {"network": "MLP", "switch": "compile", "ratio": 0.5},
    ]
    text = compile_and_bf16.markdown({"steps": steps, "instructions": ""})
    assert "| MLP | 0.50 | failed | - |" in text
    assert "unknown precision '3-true'" in text


def test_a_quick_run_switches_nothing():
    found = compile_and_bf16.switches(Conditions(threads=1, quick=True))
    assert compile_and_bf16.markdown(found) == "Not part of a quick run."
