import signal

import pytest

from lorpman.errors import ProcessLost, TrainingInterrupted, UsageError, need, unknown


def test_a_near_name_is_suggested():
    assert str(unknown("method", "pamall", ["lorpman", "pamal"])) == (
        "unknown method 'pamall'; did you mean 'pamal'? known: lorpman, pamal"
    )


def test_a_name_like_none_is_only_listed():
    assert str(unknown("method", "xyz", ["b", "a"])) == "unknown method 'xyz'; known: a, b"


def test_a_missing_package_is_named_with_the_extra_that_brings_it():
    with pytest.raises(UsageError, match=r"needs the package nowhere \(.*'lorpman\[web\]'"):
        need("nowhere.at.all", extra="web")


def test_exit_codes_are_those_that_a_shell_expects():
    assert TrainingInterrupted("stopped", signal.SIGTERM).code == 143
    assert ProcessLost.code == 75
    assert isinstance(UsageError(""), ValueError)
