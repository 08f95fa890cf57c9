"""The public names: those of the lab come late, and are listed all the same."""

import subprocess
import sys

import pytest

import lorpman as lp

LIGHT = """
import sys, lorpman
assert "lorpman.lab" not in sys.modules and "pydantic" not in sys.modules
lorpman.Problem
assert "lorpman.lab.problems.problem" in sys.modules
assert "dash" not in sys.modules
"""


@pytest.mark.slow
def test_the_lab_is_imported_when_it_is_first_asked_for():
    subprocess.run([sys.executable, "-c", LIGHT], check=True)


def test_every_public_name_is_there_and_listed():
    assert set(lp.__all__) <= set(dir(lp))
    assert all(getattr(lp, name) is not None for name in lp.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'problem'"):
        _ = lp.problem
