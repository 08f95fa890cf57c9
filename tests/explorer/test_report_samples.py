"""Real inputs in the report."""

import base64
import re

from lorpman.explorer.live_model import open_model
from lorpman.explorer.opened_run import open_runs
from lorpman.explorer.report import report_html
from lorpman.explorer.report_samples import samples_section


def test_pictures_stand_inside_the_file_with_what_every_end_says(digits, tmp_path):
    (run,) = open_runs([digits], tmp_path)
    section = samples_section(run)
    pictures = re.findall(r"data:image/png;base64,([^\"]+)", section)
    assert len(pictures) == 8
    assert base64.b64decode(pictures[0]).startswith(b"\x89PNG")
    for column in ("equal weights", "all on left", "all on right"):
        assert section.count(f">{column}</th>") == 8
    assert "<b>" in section, "what the preference moves comes first"
    assert section in report_html(run)


def test_rows_texts_and_classes_are_shown_as_the_problem_says(digits, tmp_path):
    (run,) = open_runs([digits], tmp_path)
    tasks = [task.__class__(task.name, task.loss, task.score, classes=list("abcdefghij"))
             for task in run.tasks]  # fmt: skip
    data = run.splits.test
    row = samples_section(open_model(run.model, tasks, data, show=lambda x: {"<ink>": x.sum()}))
    assert "&lt;ink&gt;" in row
    assert re.search(r"<td>(<b>)?[a-j]", row)
    text = samples_section(open_model(run.model, tasks, data, show=lambda x: "two <digits>"))
    assert text.count("two &lt;digits&gt;") == 8


def test_a_run_without_data_has_no_such_card(opened):
    assert samples_section(opened) == ""
