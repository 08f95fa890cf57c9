"""``lorpman select``: a demand in, a preference out."""

import re

import pytest

from command_line import refused, run


def test_select_chooses_on_validation_and_reports_on_test(capsys, trained):
    code, out, _ = run(
        capsys, "select", trained, "--at-least", "left=0.2", "--best", "right", "--evaluations", 6
    )
    assert code == 0
    assert re.search(r"^alpha       0\.\d+,0\.\d+$", out, re.MULTILINE) or "alpha       " in out
    for split in ("validation", "test"):
        assert re.search(rf"^{split} +left 0\.\d{{4}}  right 0\.\d{{4}}$", out, re.MULTILINE)
    assert "evaluations 1" in out
    assert "(grid and search)" in out
    code, out, _ = run(
        capsys, "select", trained, "--at-least", "left=1.5", "--knee", "--evaluations", 0
    )
    assert code == 0
    assert out.startswith("no preference keeps the bounds")
    assert "evaluations 11 networks on validation data (grid only)" in out


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        ([], "select needs exactly one of --best"),
        (["--knee", "--best", "left"], "select needs exactly one of --best"),
        (["--best", "lft"], "unknown task 'lft'; did you mean 'left'?"),
        (["--at-least", "left", "--knee"], "--at-least expects task=number, found 'left'"),
        (["--at-most", "left=0.3", "--knee"], "at_most cannot bound 'left'"),
        (["--utility", "left=-1"], "a weight must be 0 or more"),
        (["--target", "left=nan"], "must be a finite number"),
        (["--target", "left=1", "--target", "left=0.5"], "--target expects each task once"),
        (["--utility", "left=0"], "--utility needs a weight above 0"),
    ],
)
def test_a_bad_demand_is_refused(capsys, trained, demand, message):
    assert message in refused(capsys, "select", trained, *demand)


def test_a_utility_is_best_at_the_task_that_it_weighs(capsys, trained):
    found = {}
    for task in ("left", "right"):
        options = ["--utility", f"{task}=2", "--evaluations", 0]
        code, out, _ = run(capsys, "select", trained, *options)
        assert code == 0
        line = re.search("validation +(.*)", out)[1]
        found[task] = dict(part.split() for part in line.split("  "))
    assert float(found["left"]["left"]) >= float(found["right"]["left"])
    assert float(found["right"]["right"]) >= float(found["left"]["right"])
