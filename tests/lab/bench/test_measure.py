"""One failing part does not lose the others, and everything is written."""

import json

import pytest

from lorpman.errors import UsageError
from lorpman.lab.bench.measure import busy_machine, choose, run
from lorpman.lab.bench.pictures import draw
from lorpman.lab.bench.row import Measured, Row, Skipped
from lorpman.lab.bench.study import Study
from lorpman.lab.bench.table import as_markdown, as_text
from lorpman.lab.bench.timing import Conditions


def measured(value):
    return lambda conditions: Measured(value, {"ours": [value, value]}, {"second": 0.25}, "a note")


def broken(conditions):
    raise RuntimeError("no such\nnetwork")


def without_data(conditions):
    raise Skipped("no data here", {"another problem": 1.5})


ROWS = (
    Row("good", "cheap", 1.0, measured(0.5)),
    Row("bad", "dear", 1.0, measured(1.5)),
    Row("broken", "does not run", 1.0, broken),
    Row("data", "needs data", 1.0, without_data),
    Row("last", "after the broken one", 0.5, measured(0.1), "s"),
)
STUDIES = (
    Study("torn", "does not run either", broken),
    Study("look", "something to look at", lambda conditions: {"seen": 1}),
)


@pytest.fixture
def report(tmp_path):
    told = []
    found = run(ROWS, STUDIES, Conditions(threads=1, quick=True), tmp_path, told.append)
    assert any(line.startswith("broken: failed") for line in told)
    return found


def test_every_part_has_an_outcome(report):
    statuses = {outcome.name: outcome.status for outcome in report.outcomes}
    assert statuses == {
        "good": "met",
        "bad": "missed",
        "broken": "failed",
        "data": "skipped",
        "last": "met",
    }
    assert [study.status for study in report.studies] == ["failed", "done"]
    assert report.failures() == ["broken", "torn"]
    assert report.outcomes[2].note == "RuntimeError: no such network"


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


def test_the_table_says_what_was_met(report):
    rows = report.as_json()["rows"]
    text = as_text(rows).splitlines()
    assert text[1].split() == ["good", "cheap", "1.00", "x", "0.50", "x", "met"]
    assert text[2].endswith("NOT met")
    assert text[3].endswith("FAILED")
    assert "data: no data here" in text
    assert "| last | after the broken one | 0.50 s | 0.10 s | met | 2 |" in as_markdown(rows)


def test_a_picture_is_drawn_of_what_was_measured(report, tmp_path):
    assert draw(report.as_json(), tmp_path) == [tmp_path / "bench.png"]
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_only_keeps_the_order_of_the_table():
    assert choose("last, good", ["good", "bad", "last"]) == ["good", "last"]
    assert choose(None, ["good", "bad"]) == ["good", "bad"]
    with pytest.raises(UsageError, match="unknown row 'goood'; did you mean 'good'"):
        choose("goood", ["good", "bad"])


def test_a_busy_machine_is_told_of_in_one_line():
    for threads, advice in ((1, "processor time suffers less"), (2, "pass --threads 1")):
        conditions = Conditions(threads)
        assert busy_machine(0.0, conditions) == ""
        assert "load 9999.0" in busy_machine(9999.0, conditions)
        assert advice in busy_machine(9999.0, conditions)
        assert "\n" not in busy_machine(9999.0, conditions)
