"""docs/beyond.md and docs/control.md show what is in results/."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["beyond", "control"])
def test_the_page_has_the_tables_of_results(name):
    page = (ROOT / "docs" / f"{name}.md").read_text()
    script = runpy.run_path(str(ROOT / "benchmarks" / "write_beyond_page.py"))
    assert ROOT / "docs" / f"{name}.md" in script["PAGES"]
    assert "<!-- results: " in page
    assert script["filled"](page) == page, "run: make results"
