"""What tasks must reach: as a search and as a command."""

import pytest

from lorpman.explorer.bounds import read_bounds, score_weights, select_command, selection_arguments
from lorpman.explorer.opened_run import open_runs
from lorpman.explorer.request_guard import RequestRefused


def test_the_demand_is_the_command_line_s(opened, faces):
    run = opened
    assert selection_arguments(run.front, {"left": 0.3})["best"] == "right"
    assert select_command(run, {"left": 0.3}).endswith("--at-least left=0.3 --best right")
    (run,) = open_runs([faces[0]], None)
    demand = selection_arguments(run.front, {"age": 0.4})
    assert demand["at_most"] == {"age": 0.4}
    assert "utility" in demand
    command = select_command(run, {"age": 0.4})
    assert "--at-most age=0.4" in command
    assert "--utility gender=" in command
    better = {"age": 0.4, "gender": 0.9, "race": 0.9}
    assert demand["utility"](better) > demand["utility"]({**better, "race": 0.1})


def test_where_every_task_is_bound_all_count(opened):
    bounds = {"left": 0.1, "right": 0.1}
    assert "best" not in selection_arguments(opened.front, bounds)
    assert select_command(opened, bounds).count("--utility") == 2


def test_a_score_is_worth_one_over_its_range(opened):
    width = opened.front.scores.amax(0) - opened.front.scores.amin(0)
    for weight, expected in zip(score_weights(opened.front).values(), 1 / width, strict=True):
        assert weight == pytest.approx(expected.item(), rel=1e-3)


def test_empty_fields_are_no_bounds(opened):
    assert read_bounds(opened.front, [0.5, None]) == {"left": 0.5}
    assert read_bounds(opened.front, ["", 1]) == {"right": 1.0}
    assert "Fill in" in read_bounds(opened.front, [None, ""])


@pytest.mark.parametrize(
    "given", [None, [], [0.5], "ab", [True, None], ["0.5", None], [float("nan"), 0], [1e13, None]]
)
def test_what_the_page_never_sends_is_refused(opened, given):
    with pytest.raises(RequestRefused):
        read_bounds(opened.front, given)
