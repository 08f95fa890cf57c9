"""A whole command takes longer than its steps."""

import pytest

from lorpman.lab.bench import whole_run_row
from lorpman.lab.bench.benchmark_row import Skipped
from lorpman.lab.bench.timing import Conditions


def test_the_steps_of_a_command_are_counted_and_take_a_part_of_it():
    options = ("--epochs", "1", "--set", "batch_size=500", "--set", "freeze_epoch=null")
    total, steps, count = whole_run_row.train_once("multidigits", Conditions(threads=1), options)
    assert count % 2 == 0
    assert count > 0
    assert 0 < steps < total


def test_a_quick_run_and_one_without_data_say_why_there_is_no_number(tmp_path, monkeypatch):
    with pytest.raises(Skipped, match="quick"):
        whole_run_row.whole_run(Conditions(threads=1, quick=True))
    monkeypatch.setattr(whole_run_row, "train_once", lambda *given: (3.0, 2.0, 7))
    with pytest.raises(Skipped, match="no MultiMNIST") as reason:
        whole_run_row.whole_run(Conditions(threads=1, data=tmp_path))
    assert list(reason.value.also.values()) == [1.5]
