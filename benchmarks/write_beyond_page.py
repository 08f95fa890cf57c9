"""Put the tables of results/ into docs/beyond.md and docs/control.md.

    python benchmarks/write_beyond_page.py

A table stands between two comments, ``<!-- results: recipe/parts.md -->`` and ``<!-- end -->``.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("beyond", "control")]
_PART = re.compile(r"(<!-- results: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with every table as it is in ``results`` now."""

    def table(match: re.Match[str]) -> str:
        return f"{match[1]}\n{(ROOT / 'results' / match[2]).read_text().strip()}\n\n{match[3]}"

    return _PART.sub(table, page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text()))
