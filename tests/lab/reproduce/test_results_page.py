"""What is published follows from the files in ``results``, to the last digit."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from lorpman.lab.reproduce.markdown import as_json, as_markdown
from lorpman.lab.reproduce.registry import REPRODUCTIONS

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"
MADE = sorted(path.stem for path in (RESULTS / "reproduce").glob("*.json"))


@pytest.fixture(scope="module")
def results_page():
    spec = importlib.util.spec_from_file_location(
        "results_page", ROOT / "benchmarks" / "results_page.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_results_give(results_page):
    assert (ROOT / "docs" / "results.md").read_text() == results_page.page(), "run: make results"


def test_the_page_hides_no_table_or_figure():
    page = (ROOT / "docs" / "results.md").read_text()
    for name in REPRODUCTIONS:
        assert f"## {name}\n" in page if name in MADE else f"| {name} | **not run** |" in page


@pytest.mark.parametrize("name", MADE)
def test_every_table_is_what_its_runs_give(results_page, name):
    found = results_page.made_again(name)
    assert (RESULTS / "reproduce" / f"{name}.md").read_text() == as_markdown(found)
    written = json.loads((RESULTS / "reproduce" / f"{name}.json").read_text())
    assert written == json.loads(json.dumps(as_json(found)))


@pytest.mark.parametrize("name", MADE)
def test_the_status_claims_no_more_than_was_done(results_page, name):
    made = json.loads((RESULTS / "reproduce" / f"{name}.json").read_text())
    status, why, _ = results_page.read_notes(name)
    assert why
    assert (status == "generated data") == made["generated"]
    if status == "reproduced":
        assert made["comparable"]
        assert all(row["state"] == "run" for row in made["rows"])


def test_lorpman_reaches_the_published_hypervolume_on_multimnist():
    made = json.loads((RESULTS / "reproduce" / "multimnist-table.json").read_text())
    row = next(row for row in made["rows"] if row["method"] == "lorpman")
    assert made["scale"] == "paper"
    assert made["comparable"]
    assert len(row["ours"]["hypervolume"]["by_seed"]) == 3
    assert row["ours"]["hypervolume"]["mean"] >= 0.918


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
