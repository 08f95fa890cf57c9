"""Rounds are interleaved and counted as promised, and ratios are the right ones."""

import pytest

from lorpman.lab.bench.timing import Conditions, interleave, ratio


class Clock:
    """A clock that moves only when a contender says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def contender(self, name, seconds, calls):
        def call():
            calls.append(name)
            self.now += seconds

        return call


def run(seconds, quick=False):
    """Times and calls of contenders that take so long each."""
    clock, calls = Clock(), []
    contenders = {name: clock.contender(name, took, calls) for name, took in seconds.items()}
    return interleave(contenders, Conditions(threads=2, quick=quick), clock), calls


def test_rounds_alternate_and_the_first_is_not_counted():
    times, calls = run({"plain": 1.0, "ours": 2.0})
    assert calls[:6] == ["plain", "ours", "plain", "ours", "ours", "plain"]
    assert len(calls) == 2 * 16
    assert times == {"plain": [1.0] * 15, "ours": [2.0] * 15}


@pytest.mark.parametrize(
    ("seconds", "quick", "rounds"),
    [(4.0, False, 15), (6.0, False, 4), (4.0, True, 3), (6.0, True, 1)],
)
def test_fewer_rounds_where_one_takes_long(seconds, quick, rounds):
    times, _ = run({"plain": seconds, "ours": seconds}, quick)
    assert len(times["plain"]) == rounds


def test_short_contenders_are_called_several_times_a_turn():
    times, calls = run({"plain": 1 / 64, "ours": 1 / 1024})
    assert len(calls) == 2 + 2 * 15 * 31
    assert times["ours"] == [1 / 1024] * 15


def test_a_ratio_is_the_median_of_the_rounds_ratios():
    times = {"ours": [1.0, 2.0, 30.0], "plain": [2.0, 2.0, 10.0]}
    assert ratio(times, "ours", "plain") == 1.0


def test_with_one_thread_processor_time_is_taken():
    assert Conditions(threads=1).cpu_time
    assert not Conditions(threads=2).cpu_time
