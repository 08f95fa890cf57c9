"""Inputs to look at."""

import io

import pytest
import torch
from PIL import Image

from lorpman.explorer.samples import (
    Prediction,
    _one_per_task,
    choose_samples,
    first_samples,
    picture,
)


def test_samples_that_depend_on_the_preference_come_first(served):
    live = served.queries.live_runs["digits"]
    x, y = first_samples(live.held[0], 200)
    classes = [
        [output.argmax(1) for output in live.model.solution(alpha).eval()(x)]
        for alpha in (torch.tensor([0.5, 0.5]), *torch.eye(2))
    ]
    moves = sum(
        (classes[0][task] != corner[task]).long() for corner in classes[1:] for task in (0, 1)
    )
    samples = choose_samples(live.model, live.tasks, (x, y))
    shown = [int((x == one).flatten(1).all(1).nonzero()[0]) for one in samples.x]
    assert len(shown) == min(8, len(x))
    assert shown == sorted(shown)
    assert all(moves[row] > 0 for row in shown) or (moves > 0).sum() < len(shown)


def test_of_tasks_with_inputs_of_their_own_the_first_that_moves_is_shown():
    x = [torch.arange(5.0) + 10 * task for task in range(9)]
    y = [torch.arange(5) for _ in x]
    # Task 0 never moves; of every other one, the samples from its number on, modulo 5.
    moved = [torch.arange(5) >= task % 5 if task else torch.zeros(5).bool() for task in range(9)]
    inputs, targets, cards = _one_per_task(x, y, moved)
    assert [float(one) for one in inputs] == [0, 11, 22, 33, 44, 50, 61, 72, 83]
    assert [int(one) for one in targets] == [0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert cards == [[task] for task in range(1, 9)]


def test_only_another_class_is_a_flip():
    seven, one = Prediction(0, "7", True), Prediction(0, "1", False)
    assert one.flipped(seven)
    assert not seven.flipped(seven)
    assert not Prediction(0, "0.31", None).flipped(Prediction(0, "0.32", None))


@pytest.mark.parametrize(
    ("shape", "size"), [((1, 12, 8), (64, 96)), ((3, 96, 96), (96, 96)), ((10,), (96, 96))]
)
def test_images_and_rows_of_tables_become_pictures(shape, size):
    image = Image.open(io.BytesIO(picture(torch.randn(shape))))
    assert image.size == size
    low, high = image.convert("L").getextrema()
    assert low < high


@pytest.mark.parametrize("shape", [(), (1,), (2, 4, 4), (4, 4)])
def test_what_is_no_picture_has_none(shape):
    assert picture(torch.zeros(shape)) is None
