"""The table of all continuous methods."""

from lorpman.lab.bench.rivals_study import markdown


def test_the_rivals_table_has_a_line_for_each():
    found = {
        "methods": [{"method": "lorpman", "window": 4, "step": 2.8, "step per network": 0.7}],
        "our PaMaL by the straightforward one": 0.8,
    }
    text = markdown(found)
    assert "| lorpman | 4 | 2.80 | 0.70 | - |" in text
    assert "0.80" in text
