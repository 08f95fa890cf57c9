"""Switches are measured against the step without them."""

from lorpman.lab.bench import timing
from lorpman.lab.bench.compile_and_bf16_study import against_none, compile_and_bf16, markdown
from lorpman.lab.bench.timing import Conditions


def test_a_switch_is_measured_against_the_step_without():
    found = against_none("Census MLP", {"precision": "64-true"}, Conditions(threads=1, quick=True))
    assert found["ratio"] > 1
    assert len(found["rounds"]["none"]) == timing.QUICK_ROUNDS


def test_a_switch_that_fails_leaves_the_others():
    broken = against_none("Census MLP", {"precision": "3-true"}, Conditions(threads=1, quick=True))
    steps = [
        {"network": "MLP", "switch": "bf16-mixed", **broken},
        {"network": "MLP", "switch": "compile", "ratio": 0.5},
    ]
    text = markdown({"steps": steps, "instructions": ""})
    assert "| MLP | 0.50 | failed | - |" in text
    assert "unknown precision '3-true'" in text


def test_a_quick_run_switches_nothing():
    found = compile_and_bf16(Conditions(threads=1, quick=True))
    assert markdown(found) == "Not part of a quick run."
