"""The table as text, for a terminal and for a page."""

from lorpman.lab.bench.table import as_markdown, as_text, format_number

ROW = {
    "name": "good", "what": "cheap", "target": 1.0, "unit": "x", "value": 0.5, "status": "met",
    "count": 2, "note": "a note", "also": {"second": 0.25},
}  # fmt: skip
MISSED = {**ROW, "name": "bad", "value": 1.5, "status": "missed", "note": "", "also": {}}
FAILED = {**MISSED, "name": "broken", "value": None, "status": "failed", "note": "no network"}


def test_a_terminal_is_told_what_was_met():
    text = as_text([ROW, MISSED, FAILED]).splitlines()
    assert text[1].split() == ["good", "cheap", "1.00", "x", "0.50", "x", "met"]
    assert text[2].endswith("NOT met")
    assert text[3].split() == ["broken", "cheap", "1.00", "x", "-", "FAILED"]
    assert text[5:] == ["good: a note", "good: second: 0.25 x", "broken: no network"]


def test_a_page_also_has_the_rounds():
    seconds = {**ROW, "unit": "s", "target": 0.5, "value": 0.1}
    assert "| good | cheap | 0.50 s | 0.10 s | met | 2 |" in as_markdown([seconds])
    assert "- `good`: a note" in as_markdown([ROW])


def test_small_numbers_have_a_digit_more():
    assert format_number(0.0999, "x") == "0.100 x"
    assert format_number(0.1, "x") == "0.10 x"
