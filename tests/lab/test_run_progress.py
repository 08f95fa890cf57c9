import io
import time

import pytest
from rich.console import Console

from lorpman.lab.run_progress import Progress, progress_table, summary, teller, time_left, watching


def _progress(kind="pamal", state="waits", done=0, seconds=(), epochs=4):
    return Progress(kind, epochs, state, done, list(seconds))


def test_the_time_left_follows_the_speed_of_each_kind():
    trainings = [
        _progress("slow", "done", 4, [10.0] * 4),
        _progress("slow"),
        _progress("fast", "runs", 2, [1.0, 1.0]),
    ]
    assert time_left(trainings, at_once=1) == pytest.approx(4 * 10 + 2 * 1)
    assert time_left(trainings, at_once=2) == pytest.approx((4 * 10 + 2 * 1) / 2)
    # Two workers do not make the last run faster.
    assert time_left(trainings[:2], at_once=2) == pytest.approx(40)


def test_a_kind_without_an_epoch_is_taken_for_an_average_one():
    trainings = [_progress("a", "done", 4, [1.0, 3.0, 1.0, 3.0]), _progress("b")]
    assert time_left(trainings, at_once=1) == pytest.approx(4 * 2)
    assert time_left([_progress("c")], at_once=1) is None


def test_less_than_a_second_is_not_told():
    trainings = {"a": _progress("x", "runs", 3, [0.1] * 3)}
    assert summary(trainings, 1) == "0 of 1 done; running: a"


def test_a_terminal_shows_the_last_that_ended_and_counts_those_that_wait():
    ended = {f"run-{n}": _progress(state="done", done=4) for n in range(20)}
    trainings = {**ended, "now": _progress(state="runs", done=3), "next": _progress()}
    console = Console(width=100, file=io.StringIO())
    console.print(progress_table(trainings, 1))
    text = console.file.getvalue()
    assert "run-19" in text
    assert "run-2 " not in text
    assert "epoch 3/4" in text
    assert "20 of 22 done; running: now; 1 waiting" in text
    assert "next" not in text


class _Board:
    def __init__(self):
        self.looks = 0

    def look(self):
        self.looks += 1

    def table(self):
        raise AssertionError("there is no terminal")


@pytest.mark.parametrize("tells", [True, False])
def test_a_board_is_looked_at_only_where_it_tells_somebody(tells):
    board = _Board()
    with watching(board, tells, live=False):
        end = time.monotonic() + (20 if tells else 1.2)
        while not board.looks and time.monotonic() < end:
            time.sleep(0.05)
    assert bool(board.looks) == tells


def test_lines_are_told_where_there_is_no_table():
    told = []
    teller(told.append, live=True)("a")
    teller(None, live=False)("b")
    teller(told.append, live=False)("c")
    assert told == ["c"]
