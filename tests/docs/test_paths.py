"""Pages name files that exist, and every script of benchmarks/ is named by a page or a target."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "docs" / f"{name}.md" for name in ("results", "beyond", "control", "performance")),
    ROOT / "results" / "README.md",
]
# Not runs/, which a reader's own commands fill.
PATH = re.compile(r"\b((?:src|tests|docs|results|benchmarks)/[\w./-]*\w)")
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_path_on_a_page_exists(page):
    named = set(PATH.findall(page.read_text()))
    assert named
    # Some commands name the table to write without a suffix.
    missing = [p for p in named if not (ROOT / p).exists() and not list(ROOT.glob(f"{p}.*"))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_link_to_a_file_leads_there(page):
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_every_path_on_the_map_exists():
    """The map names files of the package without ``src/lorpman/``."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = set(re.findall(r"`((?:\w+/)+(?:[\w.]+)?|_?\w+\.(?:py|md))`", text))
    assert len(named) > 50
    roots = (ROOT / "src" / "lorpman", ROOT)
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []


def test_results_names_every_file_or_folder_of_its_own():
    text = (ROOT / "results" / "README.md").read_text()
    folders = [path.name for path in (ROOT / "results").iterdir() if path.is_dir()]
    assert [folder for folder in folders if f"`{folder}/" not in text] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_every_script_is_named_and_says_what_for(script):
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "Makefile", ROOT / "README.md"]
    assert any(f"benchmarks/{script.name}" in page.read_text() for page in pages)
    first = script.read_text().splitlines()[0]
    assert re.fullmatch(r'"""[A-Z].{20,}[.:].*', first), first
