"""Sliders and scores."""

import pytest

from asking import serving
from browser import move
from lorpman.explorer.cards.preference_card import preference_card, score_tiles
from lorpman.explorer.opened_run import open_runs


def test_the_toy_problem(window, toy):
    with serving([toy]) as explorer:
        view = window(explorer.url)
        view.settled()
        move(view, 0.8)
        assert set(view.scores()) == {"f1", "f2"}
        assert "lower is better" in view.page.text_content("#scores")


def bars(run, scores):
    """How far the bars of the tiles reach."""
    tiles, _ = score_tiles(run, scores, scores)
    return [float(tile.children[2].style["--part"]) for tile in tiles.children]


def test_a_bar_reaches_from_the_worst_to_the_best_of_the_front(opened, toy):
    low, high = (end.tolist() for end in (opened.front.scores.amin(0), opened.front.scores.amax(0)))
    assert bars(opened, low) == [0, 0]
    assert bars(opened, high) == [1, 1]
    assert bars(opened, [2.0, -1.0]) == [1, 0]
    assert bars(opened, [(a + b) / 2 for a, b in zip(low, high, strict=True)]) == pytest.approx(
        [0.5, 0.5], abs=1e-3
    )
    (losses,) = open_runs([toy], None)
    assert bars(losses, losses.front.scores.amin(0).tolist()) == [1, 1]


def test_every_number_of_tasks_has_the_controls_that_fit(opened, faces, objects):
    kinds = []
    for run in (opened, *open_runs([faces[0]], None), *open_runs([objects[0]], None)):
        card = preference_card([run])
        ids = [getattr(part, "id", None) for part in card._traverse()]
        sliders = [one for one in ids if isinstance(one, dict) and one["type"] == "weight"]
        kinds.append((len(sliders), "ternary" in ids))
    assert kinds == [(1, False), (3, True), (20, False)]


def test_every_task_says_what_changed_against_equal_weights(opened, toy):
    tiles, summary = score_tiles(opened, [0.8, 0.5], [0.7, 0.52])
    assert [tile.children[4].children for tile in tiles.children] == ["▲ +0.1", "▼ -0.02"]
    assert (
        summary.children == "Against equal weights: 1 better (most: left), 1 worse (most: right)."
    )
    _, summary = score_tiles(opened, [0.8, 0.5], [0.8, 0.5])
    assert summary.children == "Against equal weights: no task differs."
    # Of losses, less is better.
    (losses,) = open_runs([toy], None)
    tiles, summary = score_tiles(losses, [0.1, 0.2], [0.3, 0.2])
    assert [tile.children[4].children for tile in tiles.children] == ["▲ -0.2", "="]
    assert summary.children == "Against equal weights: 1 better (most: f1), 1 the same."


def test_twenty_tasks_stand_on_a_line_each(window, objects):
    with serving([objects[0]], objects[1]) as explorer:
        view = window(explorer.url)
        view.settled()
        boxes = [tile.bounding_box() for tile in view.page.locator(".tile").all()]
        assert len(boxes) == 20
        assert all(box["height"] < 30 for box in boxes)
        assert len({round(box["x"]) for box in boxes}) == 1
