"""What is published follows from the files in ``results``, to the last digit."""

import json
import re
from pathlib import Path

import pytest

from lorpman import UsageError
from lorpman.lab.reproduce.markdown_table import as_markdown
from lorpman.lab.reproduce.registry import REPRODUCTIONS
from lorpman.lab.reproduce.results_page import read_outcome, read_remarks, results_page
from lorpman.lab.reproduce.run_record import RunRecord
from lorpman.lab.runs.spec import Spec

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"
KEPT = sorted(path.stem for path in (RESULTS / "reproduce").glob("*.json"))


def test_the_folder_is_small_and_holds_no_run_directory():
    files = [path for path in RESULTS.rglob("*") if path.is_file()]
    assert len(files) <= 120
    assert sum(path.stat().st_size for path in files) <= 5_000_000
    of_runs = {"run.json", "metrics.jsonl", "front.json", "front.png", "measured.json"}
    assert [path for path in files if path.name in of_runs] == []


def test_the_page_is_what_results_give():
    assert (ROOT / "docs" / "results.md").read_text() == results_page(RESULTS), "run: make results"


def test_the_page_hides_no_table_or_figure():
    page, remarks = (ROOT / "docs" / "results.md").read_text(), read_remarks(RESULTS)
    for name in REPRODUCTIONS:
        if name in KEPT:
            assert f"## {name}\n" in page
        elif name in remarks:
            assert f"| {name} | **{remarks[name].status}**" in page
        else:
            assert f"| {name} | **not run** |" in page


@pytest.mark.parametrize("name", KEPT)
def test_every_table_and_number_is_what_its_runs_give(name):
    outcome = read_outcome(name, RESULTS)
    assert (RESULTS / "reproduce" / f"{name}.md").read_text() == as_markdown(outcome)
    written = json.loads((RESULTS / "reproduce" / f"{name}.json").read_text())
    assert written == json.loads(json.dumps(outcome.to_json()))
    assert (RESULTS / "reproduce" / f"{name}.png").is_file()


@pytest.mark.parametrize("name", KEPT)
def test_every_run_has_the_settings_that_its_line_asks_for(name):
    outcome = read_outcome(name, RESULTS)
    planned = iter(outcome.reproduction.planned_runs(outcome.scale, outcome.seeds))
    for record in outcome.records:
        assert record.commit
        spec = Spec.make(record.problem, record.method, record.seed, record.settings, record.scale)
        assert spec.identity() == next(planned).spec.identity()
        if "hypervolume" in record.values:
            assert record.values["hypervolume"] == record.hypervolume


@pytest.mark.parametrize("name", KEPT)
def test_the_stored_hypervolume_is_that_of_the_front(name):
    for record in read_outcome(name, RESULTS).records:
        if len(record.front.tasks) == 2:
            assert float(record.front.hypervolume()) == record.hypervolume


@pytest.mark.parametrize("name", ["multimnist/single", "recipe/comparison"])
def test_comparisons_have_the_hypervolumes_of_their_fronts(name):
    rows = json.loads((RESULTS / f"{name}.json").read_text())["rows"]
    for row in rows:
        records = [RunRecord.from_json(run) for run in row["runs"]]
        assert row["hypervolumes"] == [float(record.front.hypervolume()) for record in records]
        assert row["seeds"] == [record.seed for record in records]


def test_the_status_claims_no_more_than_was_done():
    for name, remark in read_remarks(RESULTS).items():
        outcome = read_outcome(name, RESULTS)
        # Of noise nothing is kept but the line that says that the command ran.
        assert (remark.status == "generated data") == (outcome is None)
        if outcome is not None:
            assert not outcome.generated
        if remark.status == "reproduced":
            assert outcome.comparable
            assert all(line.state == "" for line in outcome.lines)


def test_lorpman_reaches_the_published_hypervolume_on_multimnist():
    outcome = read_outcome("multimnist-table", RESULTS)
    (line,) = [line for line in outcome.lines if line.line.method == "lorpman"]
    assert outcome.scale == "paper"
    assert outcome.comparable
    volumes = line.values("hypervolume")
    assert len(volumes) == 3
    assert sum(volumes) / 3 >= 0.918


def test_a_remark_without_a_status_is_refused(tmp_path):
    (tmp_path / "reproduce").mkdir()
    remarks = tmp_path / "reproduce" / "remarks.md"
    remarks.write_text("# Remarks\n\n## toy-figure\n\nStatus: perfect. As we say.\n")
    with pytest.raises(UsageError, match=r"toy-figure must begin with 'Status"):
        read_remarks(tmp_path)
    remarks.write_text("# Remarks\n\n## toy-figure\n\nStatus: differs. By much.\n\nAnd more.\n")
    (remark,) = read_remarks(tmp_path).values()
    assert (remark.status, remark.why, remark.more) == ("differs", "By much.", "And more.")


# Decimals with three digits or more, and counts in thousands: what a result looks like.
NUMBER = re.compile(r"(?<![\w.,])(?:\d+\.\d{3,}(?:e-?\d+)?|\d{1,3}(?:,\d{3})+)(?!\w|[.,]\d)")


def test_every_number_in_the_readme_is_a_result():
    known = set()
    for path in RESULTS.rglob("*.md"):
        known |= set(NUMBER.findall(path.read_text()))
    readme = NUMBER.findall((ROOT / "README.md").read_text())
    assert "0.9227" in readme
    assert [number for number in readme if number not in known] == []


def test_what_counts_as_a_number():
    text = "0.9227 ± 0.0005, 45,920 of 2,792,950; 7.528e-07. Not: 0.5, 3.11, torch 2.13.0, v1.234.5"
    assert NUMBER.findall(text) == ["0.9227", "0.0005", "45,920", "2,792,950", "7.528e-07"]
