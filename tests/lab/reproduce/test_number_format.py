"""Numbers as tables print them."""

import pytest

from lorpman.lab.reproduce.number_format import format_ours, format_paper, spread
from lorpman.lab.reproduce.reproduction import Reported


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Reported(10.0), "10.00"),
        (Reported(9.99999), "10.0000"),
        (Reported(0.01), "0.0100"),
        (Reported(-0.32, 0.1), "-0.3200 ± 0.1000"),
        (Reported(7.5281e-7, 1.234e-8), "7.528e-07 ± 1.2e-08"),
    ],
)
def test_ours_has_four_digits_that_say_something(number, text):
    assert format_ours(number) == text


def test_the_papers_digits_are_neither_lost_nor_made_up():
    assert format_paper(Reported(0.918, 0.0018)) == "0.918 ± 0.0018"
    assert format_paper(Reported(0.9)) == "0.900"
    assert format_paper(Reported(10.0)) == "10.00"


def test_one_seed_has_no_deviation_and_none_no_number():
    assert spread([0.5]) == Reported(0.5, None)
    assert spread([]) is None
