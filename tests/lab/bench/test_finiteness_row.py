"""Looking for what is not finite is measured beside a real step."""

from lorpman.lab.bench.finiteness_row import finiteness
from lorpman.lab.bench.timing import Conditions


def test_the_checks_and_a_step_are_timed_in_turns():
    measured = finiteness(Conditions(threads=1, quick=True))
    assert set(measured.rounds) == {"step", "check", "weights only"}
    assert measured.value > 0
    assert "196 steps" in measured.note
