"""The report as a file."""

import shutil

from browser import fits
from lorpman.explorer.report import write_report
from lorpman.front.front import Front


def test_the_report_works_from_a_file(window, digits, faces, objects, tmp_path):
    from plotly.offline import get_plotlyjs

    for path, figures in ((digits, 6), (faces[0], 6), (objects[0], 5)):
        to = tmp_path / f"{path.name}.html"
        write_report(path, to)
        # The library of pictures is in it once.
        assert len(get_plotlyjs()) < to.stat().st_size < 1.3 * len(get_plotlyjs())
        view = window(to.as_uri())
        view.page.wait_for_function(
            "count => document.querySelectorAll('.main-svg').length >= count", arg=figures
        )
        assert fits(view)
        front = Front.load(path / "front.json")
        assert view.page.locator("tbody").first.locator("tr").count() == len(front)
        assert f"{front.scores[0, 0]:.4f}" in view.page.text_content("table")
        assert "learning_rate" in view.page.text_content("body")


def test_a_report_of_strange_names_holds_no_markup_of_theirs(digits, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(digits, run)
    for name in ("front.json", "metrics.jsonl"):
        text = (run / name).read_text().replace('"left"', '"</script><b>left"')
        (run / name).write_text(text)
    write_report(run, tmp_path / "report.html")
    assert "<b>left" not in (tmp_path / "report.html").read_text()
