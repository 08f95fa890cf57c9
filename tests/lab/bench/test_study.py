"""A study always gives a result that JSON can hold, whether it ran or not."""

import json

import pytest

from lorpman.lab.bench.study import Study
from lorpman.lab.bench.timing import Conditions

CONDITIONS = Conditions(threads=1, quick=True)


def test_what_a_study_found_is_in_its_result():
    seen = []

    def measure(conditions):
        seen.append(conditions)
        return {"threads": conditions.threads}

    result = Study("look", "something to look at", measure).run(CONDITIONS)
    assert seen == [CONDITIONS]
    assert (result.name, result.what, result.status) == ("look", "something to look at", "done")
    assert result.found == {"threads": 1}
    assert result.note == ""
    assert result.seconds > 0


def test_a_failure_is_a_result_with_its_reason_on_one_line():
    def measure(conditions):
        raise ValueError("no such\n  network")

    result = Study("torn", "does not run", measure).run(CONDITIONS)
    assert result.status == "failed"
    assert result.note == "ValueError: no such network"
    assert result.found == {}
    assert result.seconds > 0


def test_an_interrupt_is_no_failure_of_the_study():
    def measure(conditions):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Study("stopped", "by hand", measure).run(CONDITIONS)


def test_a_result_survives_json():
    result = Study("look", "something", lambda conditions: {"nested": {"seen": [1, 2]}}).run(
        CONDITIONS
    )
    kept = json.loads(json.dumps(result.as_json()))
    assert kept["found"] == {"nested": {"seen": [1, 2]}}
    assert set(kept) == {"name", "what", "status", "found", "note", "seconds"}
