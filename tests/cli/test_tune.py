"""``lorpman tune``: how ranges are read; the search is tested in tests/lab."""

import pytest

from command_line import refused
from lorpman.cli.tune import _read_ranges


def test_ranges_are_values_of_settings():
    ranges = _read_ranges(["rank=4,8", " scale =0.5,1"])
    assert ranges == {"rank": [4, 8], "scale": [0.5, 1]}


@pytest.mark.parametrize("search", ["rank", "rank=", "=4"])
def test_a_range_without_values_is_refused(capsys, search):
    assert "expects" in refused(capsys, "tune", "toy", "--search", search)
