"""A row about steps compares what it says."""

from lorpman.lab.bench import step_rows
from lorpman.lab.bench.timing import Conditions, ratio
from lorpman.lab.bench.workload import from_preset


def test_the_value_is_our_step_by_as_many_plain_ones(monkeypatch):
    passes = []
    plain_steps = step_rows.plain_steps

    def counted(workload, count, tuned=False):
        passes.append(count)
        return plain_steps(workload, count, tuned)

    monkeypatch.setattr(step_rows, "plain_steps", counted)
    workload = from_preset("multidigits", (1, 12, 12), 10, batch=8)
    measured = step_rows.step_row(workload, Conditions(threads=1, quick=True), "a note")
    assert passes == [workload.spec.training.window] * 2
    assert measured.value == ratio(measured.rounds, "lorpman", "plain")
    assert list(measured.also) == [f"against plain steps {step_rows.TUNED}"]
    assert measured.note == "a note"
