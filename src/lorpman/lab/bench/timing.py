"""Times of several ways, taken in turns, so that what disturbs one disturbs all."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Times = dict[str, list[float]]
"""Seconds of one call in every round, by contender."""

ROUNDS = 15
ROUNDS_IF_SLOW = 4
"""Where a round takes more than :data:`SLOW_ROUND` seconds."""
SLOW_ROUND = 10.0
QUICK_ROUNDS = 3
QUICK_ROUNDS_IF_SLOW = 1
# Shorter turns than this would measure the clock and the scheduler.
_SHORTEST_TURN = 0.03
# But a long contender is not repeated for the sake of a short one.
_LONGEST_ROUND_OF_CALLS = 1.0


@dataclass(frozen=True)
class Conditions:
    """How a run of the benchmark measures."""

    threads: int
    """How many torch may use."""
    quick: bool = False
    """Fewer rounds and smaller networks; not for quoting."""
    data: Path = Path()
    """Where datasets are, for the rows that train on real ones."""

    @property
    def cpu_time(self) -> bool:
        """Whether processor time is taken.

        With one thread it means the same as wall time, and other work on the machine hardly
        disturbs it.
        """
        return self.threads == 1

    @property
    def clock(self) -> Callable[[], float]:
        """The clock that is read before and after a turn."""
        return time.process_time if self.cpu_time else time.perf_counter

    def rounds(self, seconds: float) -> int:
        """How many rounds are run, by how long one takes.

        Args:
            seconds: How long one round takes.
        """
        if self.quick:
            return QUICK_ROUNDS if seconds <= SLOW_ROUND else QUICK_ROUNDS_IF_SLOW
        return ROUNDS if seconds <= SLOW_ROUND else ROUNDS_IF_SLOW


def interleave(
    contenders: Mapping[str, Callable[[], object]],
    conditions: Conditions,
    clock: Callable[[], float] | None = None,
) -> Times:
    """Run every contender once per round, in turns; the first round is not counted.

    Every second round goes backwards, so that nobody always runs in the wake of the same other.
    Short contenders are called several times per turn, all equally often.

    Args:
        contenders: What is called, by name.
        conditions: How many rounds, and which clock.
        clock: Another one, for tests.

    Returns:
        The seconds of one call in every round, by name.
    """
    clock = clock or conditions.clock
    # Not counted: it loads kernels and fills caches. But it tells how long a call takes.
    first = {name: _turn(call, 1, clock) for name, call in contenders.items()}
    calls = max(1, math.ceil(_SHORTEST_TURN / max(min(first.values()), 1e-6)))
    calls = min(calls, max(1, int(_LONGEST_ROUND_OF_CALLS / max(sum(first.values()), 1e-6))))
    times: Times = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(conditions.rounds(calls * sum(first.values()))):
        # Back and forth, so that a machine that slows down in a round favours nobody.
        for name in names if turn % 2 == 0 else reversed(names):
            times[name].append(_turn(contenders[name], calls, clock))
    return times


def _turn(call: Callable[[], object], calls: int, clock: Callable[[], float]) -> float:
    began = clock()
    for _ in range(calls):
        call()
    return (clock() - began) / calls


def ratio(times: Mapping[str, Sequence[float]], over: str, under: str) -> float:
    """The median over rounds of one contender's time by another's in the same round.

    Args:
        times: What :func:`interleave` gave.
        over: The contender above the line.
        under: The contender below it.

    Returns:
        The ratio, which a machine that slows down for some rounds hardly changes.

    >>> ratio({"ours": [2.0, 4.0, 9.0], "plain": [1.0, 4.0, 6.0]}, "ours", "plain")
    1.5
    """
    pairs = zip(times[over], times[under], strict=True)
    return statistics.median(ours / theirs for ours, theirs in pairs)
