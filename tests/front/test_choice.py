"""Choosing a point: bounds in both directions, and each of the four things to do best."""

import pytest
import torch

from front.fronts import curve, mixed
from lorpman.errors import UsageError
from lorpman.front.choice import Choice
from lorpman.front.front import Front


def test_bound_and_best_pick_the_best_point_that_keeps_the_bound() -> None:
    choice = curve().select(at_least={"left": 0.8}, best="right")
    assert (choice.index, choice.feasible) == (1, True)
    assert choice.scores == {"left": 0.80, "right": 0.93}
    assert torch.equal(choice.alpha, torch.tensor([0.25, 0.75]))


def test_a_minimised_task_is_bounded_from_above_and_chosen_alike() -> None:
    bound = float(mixed().scores[1, 0])
    for same, mirrored in (
        (curve().select(at_least={"left": 0.8}, best="right"), {"at_most": {"age": bound}}),
        (curve().select(at_least={"left": 0.99}, best="right"), {"at_most": {"age": 0.01}}),
    ):
        choice = mixed().select(**mirrored, best="right")  # type: ignore[arg-type]
        assert (choice.index, choice.feasible) == (same.index, same.feasible)
    assert mixed().select(best="age").index == curve().select(best="left").index == 3


def test_an_impossible_demand_gives_the_nearest_point_and_says_so() -> None:
    choice = curve().select(at_least={"left": 0.99}, best="right")
    assert (choice.index, choice.feasible) == (3, False)
    both = curve().select(at_least={"left": 0.92, "right": 0.92}, best="left")
    # In ranges of the front (0.45 and 0.35), rows 1 to 3 miss by 0.27, 0.16 and 0.91.
    assert (both.index, both.feasible) == (2, False)


def test_knee_is_farthest_from_the_line_between_the_ends() -> None:
    front = curve().non_dominated()
    unit = (front.scores - front.scores.amin(0)) / (front.scores.amax(0) - front.scores.amin(0))
    start, end = unit[0], unit[3]
    line = (end - start) / (end - start).norm()
    away = (unit - start) - ((unit - start) @ line)[:, None] * line
    assert curve().select(knee=True).index == int(away.norm(dim=1).argmax())
    assert curve().select(knee=True).index == mixed().select(knee=True).index


def test_target_is_the_closest_in_ranges_and_may_leave_tasks_out() -> None:
    assert curve().select(target={"left": 0.79, "right": 0.93}).index == 1
    assert curve().select(target={"right": 0.61}).index == 3
    assert mixed().select(target={"age": 0.11, "right": 0.88}).index == 2


def test_utility_sees_scores_by_name_within_bounds() -> None:
    assert curve().select(utility=lambda s: -abs(s["left"] - 0.86)).index == 4
    bounded = curve().select(utility=lambda s: s["left"], at_least={"right": 0.9})
    assert bounded.index == 1


def test_equal_points_are_settled_by_the_other_tasks() -> None:
    scores = torch.tensor([[0.5, 0.2], [0.5, 0.4], [0.1, 0.9]])
    front = Front(torch.full((3, 2), 0.5), scores, ("a", "b"), (True, True), (0.0, 0.0))
    assert front.select(best="a").index == 1


def test_a_single_point_is_always_the_choice() -> None:
    front = Front(torch.ones(1, 2) / 2, torch.ones(1, 2), ("a", "b"), (True, True), (0.0, 0.0))
    for choice in (
        front.select(knee=True),
        front.select(target={"a": 0.0}),
        front.select(best="b"),
    ):
        assert isinstance(choice, Choice)
        assert (choice.index, choice.feasible) == (0, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of best=.*got 0"),
        ({"best": "age", "knee": True}, "got 2"),
        ({"best": "rigth"}, "unknown task 'rigth'; did you mean 'right'"),
        ({"at_least": {"nose": 1.0}, "knee": True}, "unknown task 'nose'"),
        (
            {"at_least": {"age": 0.1}, "best": "right"},
            r"smaller is better; pass at_most=\{'age': 0.1\}",
        ),
        ({"at_most": {"right": 0.1}, "best": "age"}, r"bigger is better; pass at_least=\{'right'"),
        ({"target": {"age": float("nan")}}, "'age' must be a finite number, got nan"),
        ({"target": {}}, "target names no task"),
        ({"utility": lambda _: float("nan")}, "utility must return a number"),
    ],
)
def test_a_demand_that_makes_no_sense_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        mixed().select(**options)  # type: ignore[arg-type]


def test_a_bound_that_is_just_met_is_kept() -> None:
    choice = curve().select(at_least={"left": 0.8, "right": 0.93}, best="left")
    assert (choice.index, choice.feasible) == (1, True)


def test_dominated_points_do_not_stretch_the_unit_of_a_task() -> None:
    scores = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.45, 0.65], [-9.0, 0.5]])
    front = Front(torch.full((4, 2), 0.5), scores, ("a", "b"), (True, True), (0.0, 0.0))
    # From (0.5, 0.5) in ranges of the front, which are 1 and 1: row 2 is the nearest.
    assert front.select(target={"a": 0.5, "b": 0.5}).index == 2
    # Row 3 falls 9 ranges short of a, row 0 half of one: had row 3 stretched the unit, it too.
    assert front.select(at_least={"a": 0.5, "b": 0.9}, best="a").index == 2


def test_a_task_that_no_preference_changes_keeps_its_unit() -> None:
    scores = torch.tensor([[0.5, 0.2], [0.5, 0.4]])
    front = Front(torch.full((2, 2), 0.5), scores, ("a", "b"), (True, True), (0.0, 0.0))
    assert front.select(target={"a": 0.9, "b": 0.4}).index == 1
