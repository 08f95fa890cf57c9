"""The measured parts of the page are a run's; the rest is what people wrote."""

import json
from pathlib import Path

import pytest

from lorpman.errors import UsageError
from lorpman.lab.bench.performance_page import fill_page

ROOT = Path(__file__).parents[3]


def test_the_page_has_the_numbers_of_the_kept_run():
    page = (ROOT / "docs" / "performance.md").read_text()
    described = json.loads((ROOT / "results" / "bench" / "bench.json").read_text())
    assert fill_page(page, described) == page


def test_a_page_keeps_what_people_wrote():
    described = {
        "rows": [],
        "studies": [{"name": "growth", "status": "failed", "note": "broke", "found": {}}],
    }
    page = (
        "# Title\n<!-- bench: growth -->\nold\n<!-- end -->\n<!-- bench: rivals -->\n<!-- end -->"
    )
    assert fill_page(page, described) == (
        "# Title\n<!-- bench: growth -->\n\nbroke\n\n<!-- end -->\n"
        "<!-- bench: rivals -->\n\nNot part of this run.\n\n<!-- end -->"
    )
    with pytest.raises(UsageError, match="unknown part 'tables'"):
        fill_page("<!-- bench: tables -->\n<!-- end -->", described)
