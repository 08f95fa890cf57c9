"""docs/beyond.md shows what is in results/."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_tables_of_results():
    page = (ROOT / "docs" / "beyond.md").read_text()
    script = runpy.run_path(str(ROOT / "benchmarks" / "write_beyond_page.py"))
    assert "<!-- results: " in page
    assert script["filled"](page) == page, "run: make results"
