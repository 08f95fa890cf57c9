"""Inputs as people see them."""

import io

import pytest
import torch
from PIL import Image

from lorpman.errors import UsageError
from lorpman.explorer.shown_input import ShownInput, picture, shown_input


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


def test_short_rows_are_tables_and_long_ones_shades():
    short = shown_input(torch.tensor([0.5, 2.0]), None)
    assert short.row == (("1", "0.5"), ("2", "2"))
    assert short.picture is None
    assert shown_input(torch.randn(40), None).picture is not None


def test_a_problem_says_how_its_inputs_look():
    row = shown_input(torch.tensor([41.0, 1.0]), lambda x: {"age": x[0], "place": "Paris"})
    assert row.row == (("age", "41"), ("place", "Paris"))
    assert shown_input(torch.zeros(9), lambda x: "a text").text == "a text"
    image = shown_input(torch.zeros(12), lambda x: torch.rand(3, 2, 2))
    assert Image.open(io.BytesIO(image.picture)).size == (96, 96)


def test_long_texts_are_cut():
    text = shown_input("word " * 1000, None).text
    assert text.endswith(" ...")
    assert len(text) < 500


def test_what_cannot_be_shown_is_left_out():
    assert shown_input(object(), None) == ShownInput()


def test_a_show_that_fails_is_named():
    with pytest.raises(UsageError, match="show of the problem failed: KeyError: 'age'"):
        shown_input({}, lambda x: x["age"])
    with pytest.raises(UsageError, match=r"must give an image .*, found \[7, 2\]"):
        shown_input(torch.zeros(1), lambda x: torch.zeros(7, 2))
