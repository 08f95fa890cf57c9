"""What all figures share."""

from dataclasses import replace

import torch

from lorpman.explorer.figures.style import (
    axis_title,
    glyph,
    hover_texts,
    point_details,
    score_limits,
    weights_text,
)


def test_of_many_tasks_the_largest_weights_are_named():
    text = weights_text(list("abcdef"), [0.1, 0.3, 0.05, 0.35, 0.05, 0.15])
    assert text == "d 35%, b 30%, f 15%, a 10% ..."


def test_limits_are_turned_where_less_is_better(opened):
    front = replace(opened.front, maximise=(True, False))
    worst, best = score_limits([front])
    low, high = front.scores.amin(0), front.scores.amax(0)
    assert worst == [low[0], high[1]]
    assert best == [high[0], low[1]]
    assert "←" in axis_title(front, 1)
    assert "→" in axis_title(front, 0)


def test_equal_scores_still_have_an_axis(opened):
    flat = replace(opened.front, scores=torch.full_like(opened.front.scores, 0.5))
    worst, best = score_limits([flat])
    assert all(b > w for w, b in zip(worst, best, strict=True))


def test_a_point_says_what_it_is(opened):
    details = point_details(opened, [3, 1])
    assert details["customdata"] == [["digits", 3], ["digits", 1]]
    assert details["text"] == [hover_texts(opened)[place] for place in (3, 1)]


def test_signs_in_space_are_those_that_can_be_drawn_there():
    assert [glyph(place, 3) for place in range(6)] == list("●■◆✚✖●")
