"""Hypervolume by sampling, for fronts of so many tasks that no exact method ends."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lorpman.front.dominance import Floats

_PILOT = 8192  # samples that tell which estimator is better
_CHUNK = 16384  # samples drawn at once; more would not fit into a processor's cache
_UNION_COST = 1.3  # a union sample takes this many times a box sample, measured
# How many bits are set in every 16-bit word.
_BITS_SET = np.array([bin(word).count("1") for word in range(1 << 16)], dtype=np.uint8)


class Sampled(NamedTuple):
    """What sampling says of a volume."""

    estimator: str
    """Which of "box" and "union" was better on these boxes."""
    log_volume: float
    """The natural logarithm of the volume: of 40 tasks it may be very small."""
    relative_error: float
    """The standard error over the volume."""


def sample_volume(boxes: Floats, seed: int, target: float, most: int) -> Sampled:
    """Estimate the volume of a union of boxes that all start at the origin.

    The choice between two estimators weighs the variances of two pilots by fixed costs, not by a
    clock: a seed must give the same number on a busy machine.

    Args:
        boxes: Their upper corners, ``[n, m]``, all positive.
        seed: Fixes the number.
        target: The relative standard error to reach.
        most: The most samples to take for it.

    Returns:
        The volume's logarithm, its error, and how it was sampled.
    """
    rng = np.random.default_rng(seed)
    draws = {"box": _hit_or_miss(boxes, rng), "union": _karp_luby(boxes, rng)}
    costs = {"box": 1.0, "union": _UNION_COST}
    spread = {name: _relative_variance(draw[1](_PILOT)) for name, draw in draws.items()}
    name = min(spread, key=lambda key: spread[key] * costs[key])
    # A quarter more than the pilot asks for, because the pilot's own variance is an estimate.
    wanted = max(min(1.25 * spread[name] / target**2, most), _PILOT)
    log_unit, draw = draws[name]
    sizes = [_CHUNK] * int(wanted // _CHUNK) + [math.ceil(wanted % _CHUNK)]
    weights = np.concatenate([draw(size) for size in sizes if size])
    error = math.sqrt(_relative_variance(weights) / len(weights))
    return Sampled(name, log_unit + math.log(weights.mean()), error)


def _relative_variance(weights: Floats) -> float:
    """Variance over squared mean; at least 1 / n, since n equal samples do not prove certainty."""
    mean = float(weights.mean())
    return max(float(weights.var()) / mean**2, 1.0 / len(weights)) if mean else math.inf


_Estimator = tuple[float, Callable[[int], Floats]]
"""The logarithm of the volume that samples come from, and a function that draws weights."""


def _hit_or_miss(boxes: Floats, rng: np.random.Generator) -> _Estimator:
    """Points of the box up to the ideal corner: weight 1 inside some box, else 0."""
    ideal, counts = boxes.max(axis=0), _counter(boxes)

    def draw(size: int) -> Floats:
        return (counts(size, lambda j: rng.random(size) * ideal[j]) > 0).astype(np.float64)

    return float(np.log(ideal).sum()), draw


def _karp_luby(boxes: Floats, rng: np.random.Generator) -> _Estimator:
    """Points of box i, drawn with p_i = vol_i / sum vol: weight 1 / how many boxes hold it."""
    logs, counts = np.log(boxes).sum(axis=1), _counter(boxes)
    total = float(np.logaddexp.reduce(logs))
    chances = np.exp(logs - total)
    chances /= chances.sum()

    def draw(size: int) -> Floats:
        picked = boxes[rng.choice(len(boxes), size, p=chances)]
        return 1.0 / counts(size, lambda j: rng.random(size) * picked[:, j])

    return total, draw


def _counter(boxes: Floats) -> Callable[[int, Callable[[int], Floats]], NDArray[np.int64]]:
    """A function that counts the boxes around each sample, given its j-th coordinates ``[size]``.

    One bit per box: for each objective, the boxes that reach past a value form a suffix of the
    sorted boxes, so a binary search finds their bits and an AND over objectives does the rest.
    """
    n, m = boxes.shape
    words = -(-n // 64)
    bits = np.packbits(np.eye(n, 64 * words, dtype=bool), axis=1, bitorder="little")
    order, levels = np.argsort(boxes, axis=0).T, np.sort(boxes, axis=0).T.copy()
    suffixes = np.zeros((m, n + 1, words), dtype=np.uint64)
    for j in range(m):
        ranked = bits.view(np.uint64)[order[j, ::-1]]
        suffixes[j, :n] = np.bitwise_or.accumulate(ranked, axis=0)[::-1]

    def counts(size: int, coordinates: Callable[[int], Floats]) -> NDArray[np.int64]:
        around = np.repeat(suffixes[0, :1], size, axis=0)
        for j in range(m):
            x = coordinates(j)
            # Below the lowest corner every box reaches x: on clustered fronts, the usual case.
            high = np.flatnonzero(x > levels[j, 0])
            around[high] &= suffixes[j, np.searchsorted(levels[j], x[high])]
        return _BITS_SET[around.view(np.uint16)].sum(axis=1, dtype=np.int64)

    return counts
