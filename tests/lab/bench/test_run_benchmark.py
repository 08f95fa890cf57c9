"""One failing part does not lose the others, and everything is written."""

import json

import pytest

from lorpman.errors import UsageError
from lorpman.lab.bench.benchmark_row import BenchmarkRow, Measurement, Skipped
from lorpman.lab.bench.run_benchmark import busy_machine, choose_parts, run_benchmark
from lorpman.lab.bench.study import Study
from lorpman.lab.bench.timing import Conditions


def gives(value):
    return lambda conditions: Measurement(
        value, {"ours": [value, value]}, {"second": 0.25}, "a note"
    )


def broken(conditions):
    raise RuntimeError("no such\nnetwork")


def without_data(conditions):
    raise Skipped("no data here", {"another problem": 1.5})


ROWS = (
    BenchmarkRow("good", "cheap", 1.0, gives(0.5)),
    BenchmarkRow("bad", "dear", 1.0, gives(1.5)),
    BenchmarkRow("broken", "does not run", 1.0, broken),
    BenchmarkRow("data", "needs data", 1.0, without_data),
    BenchmarkRow("last", "after the broken one", 0.5, gives(0.1), "s"),
)
STUDIES = (
    Study("torn", "does not run either", broken),
    Study("look", "something to look at", lambda conditions: {"seen": 1}),
)


@pytest.fixture
def report(tmp_path):
    told = []
    found = run_benchmark(ROWS, STUDIES, Conditions(threads=1, quick=True), tmp_path, told.append)
    assert any(line.startswith("broken: failed") for line in told)
    return found


def test_every_part_has_a_result(report):
    statuses = {row.name: row.status for row in report.rows}
    assert statuses == {
        "good": "met",
        "bad": "missed",
        "broken": "failed",
        "data": "skipped",
        "last": "met",
    }
    assert [study.status for study in report.studies] == ["failed", "done"]
    assert report.failures() == ["broken", "torn"]
    assert report.rows[2].note == "RuntimeError: no such network"


def test_everything_is_in_the_json(report, tmp_path):
    kept = json.loads((tmp_path / "bench.json").read_text())
    assert kept["threads"] == 1
    assert kept["clock"] == "processor time"
    assert kept["command"] == "lorpman bench --quick --threads 1"
    assert {"before", "after"} == set(kept["load"])
    assert "torch" in kept["versions"]
    rows = {row["name"]: row for row in kept["rows"]}
    assert rows["good"]["rounds"] == {"ours": [0.5, 0.5]}
    assert rows["data"]["also"] == {"another problem": 1.5}
    assert kept["studies"][1]["found"] == {"seen": 1}


def test_only_keeps_the_order_of_the_table():
    assert choose_parts("last, good", ["good", "bad", "last"]) == ["good", "last"]
    assert choose_parts(None, ["good", "bad"]) == ["good", "bad"]
    with pytest.raises(UsageError, match="unknown row 'goood'; did you mean 'good'"):
        choose_parts("goood", ["good", "bad"])


def test_a_busy_machine_is_told_of_in_one_line():
    for threads, advice in ((1, "processor time suffers less"), (2, "pass --threads 1")):
        conditions = Conditions(threads)
        assert busy_machine(0.0, conditions) == ""
        assert "load 9999.0" in busy_machine(9999.0, conditions)
        assert advice in busy_machine(9999.0, conditions)
        assert "\n" not in busy_machine(9999.0, conditions)
