"""A row is met by a value of at most its target."""

import pytest

from lorpman.lab.bench.benchmark_row import BenchmarkRow, Measurement, RowResult


@pytest.mark.parametrize(("value", "status"), [(0.99, "met"), (1.0, "met"), (1.01, "missed")])
def test_the_target_itself_is_still_met(value, status):
    measurement = Measurement(value, {"ours": [1.0, 2.0], "plain": [1.0]}, {"other": 2.0}, "a note")
    row = BenchmarkRow("name", "what", 1.0, lambda conditions: measurement)
    result = RowResult.of(row, measurement, seconds=3.0)
    assert result.status == status
    assert result.count == 2
    assert result.as_json()["also"] == {"other": 2.0}


def test_a_row_that_was_not_measured_has_no_value():
    row = BenchmarkRow("name", "what", 1.0, lambda conditions: Measurement(0.5, {}))
    result = RowResult.without(row, "skipped", "no data", {"other": 2.0}, 0.0)
    assert result.value is None
    assert (result.status, result.note, result.also) == ("skipped", "no data", {"other": 2.0})
