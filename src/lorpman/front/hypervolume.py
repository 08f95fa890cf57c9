"""How good a front is, as one number: the volume its points dominate, exact or sampled."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.task import signs

Floats = NDArray[np.float64]

# Most points for which moocore answers within about half a second, by number of objectives,
# measured on fronts without a dominated point. It cannot be interrupted, so these are strict.
_EXACT_POINTS = {2: 100_000, 3: 20_000, 4: 5_000, 5: 4_000, 6: 600}
_EXACT_POINTS |= {7: 180, 8: 100, 9: 55, 10: 40, 11: 30, 12: 24}
_MOOCORE_OBJECTIVES = 31
_MOOCORE_COLUMNS = 255
_INCLUSION_POINTS = 16  # 2^16 subsets: tens of milliseconds
_PILOT = 8192
_CHUNK = 16384
_UNION_COST = 1.3  # a union sample takes this many times a box sample, measured
_ONES = np.array([bin(word).count("1") for word in range(1 << 16)], dtype=np.uint8)


class Hypervolume(float):
    """A volume that knows its standard error (0.0 when exact) and how it was computed.

    >>> volume = Hypervolume(0.81)
    >>> volume > 0.8, volume
    (True, Hypervolume(0.81, exact))
    >>> value, stderr, method = Hypervolume(0.5, 0.001, "monte-carlo: box")
    >>> value, stderr, method
    (0.5, 0.001, 'monte-carlo: box')
    """

    stderr: float
    method: str

    def __new__(cls, value: float, stderr: float = 0.0, method: str = "exact") -> "Hypervolume":
        self = super().__new__(cls, value)
        self.stderr = stderr
        self.method = method
        return self

    @property
    def value(self) -> float:
        return float(self)

    def __iter__(self) -> Iterator[float | str]:
        return iter((self.value, self.stderr, self.method))

    def __getitem__(self, index: int) -> float | str:
        return tuple(self)[index]

    def __getnewargs__(self) -> tuple[float, float, str]:  # type: ignore[override]
        return self.value, self.stderr, self.method

    def __str__(self) -> str:
        return float.__repr__(self)

    def __repr__(self) -> str:
        error = f" ± {self.stderr:.2g}" if self.stderr else ""
        return f"Hypervolume({self.value:.6g}{error}, {self.method})"


def hypervolume(
    points: Tensor | ArrayLike,
    reference: float | Sequence[float] | Tensor | Floats,
    maximise: bool | Sequence[bool] = True,
    *,
    method: str = "auto",
    seed: int = 0,
    target_stderr: float = 1e-3,
    max_samples: int = 1 << 23,
) -> Hypervolume:
    """The volume between ``reference [m]`` and ``points [n, m]``: |union_i [reference, point_i]|.

    ``method`` is "exact", "monte-carlo", or "auto": exact where that takes under a second
    (forcing "exact" beyond 10 objectives can take hours, and cannot be interrupted).
    Sampling stops at the relative standard error ``target_stderr`` or at ``max_samples``; the
    same points, in any order, and the same ``seed`` give the same number, however busy the machine.

    >>> hypervolume([[0.9, 0.9]], reference=0.0)
    Hypervolume(0.81, exact)
    >>> tuple(hypervolume([[0.5, 1.5], [1.5, 0.5]], reference=[2.0, 2.0], maximise=False))
    (1.25, 0.0, 'exact')
    """
    if method not in ("auto", "exact", "monte-carlo"):
        raise UsageError(f"method must be 'auto', 'exact' or 'monte-carlo', got '{method}'")
    if not target_stderr > 0 or max_samples < 1:
        found = f"got {target_stderr} and {max_samples}"
        raise UsageError(f"target_stderr and max_samples must be positive, {found}")
    boxes, exponent = _boxes(_gains(points, reference, maximise))
    n, m = boxes.shape
    if n == 0:
        return Hypervolume(0.0)
    if method == "exact" or (method == "auto" and _is_quick(n, m)):
        return Hypervolume(_power(_exact(boxes), exponent))
    name, log_fraction, error = _sample(boxes, seed, target_stderr, max_samples)
    value = _exp(log_fraction + exponent * math.log(2.0))
    return Hypervolume(value, value * error, f"monte-carlo: {name}")


def non_dominated_mask(
    points: Tensor | ArrayLike, maximise: bool | Sequence[bool] = True
) -> Tensor:
    """Which of ``points [n, m]`` no other one beats: bool ``[n]``; all copies of a point are kept.

    Point q beats p if it is as good in every objective and better in one.

    >>> non_dominated_mask([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]])
    tensor([ True,  True, False])
    """
    return torch.from_numpy(_non_dominated(_gains(points, 0.0, maximise)))


def _gains(
    points: Tensor | ArrayLike,
    reference: float | Sequence[float] | Tensor | Floats,
    maximise: bool | Sequence[bool],
) -> Floats:
    """How much better than the reference, bigger is better: ``[n, m]`` in float64."""
    table = _as_array("points", points)
    if table.ndim and len(table) == 0:
        return np.zeros((0, 1))
    if table.ndim != 2 or table.shape[1] == 0:
        fix = "pass one row per point and one column per objective, as in [[0.9, 0.8]]"
        raise UsageError(f"points must have shape [n, m], got {list(table.shape)}; {fix}")
    origin, turns = _as_array("reference", reference), signs(maximise)
    for name, given in (("reference", origin), ("maximise", turns)):
        if given.shape not in ((), (table.shape[1],)):
            expected = f"one value or {table.shape[1]}, one per objective"
            raise UsageError(f"{name} must hold {expected}, got shape {list(given.shape)}")
    with np.errstate(over="ignore", invalid="ignore"):
        gains: Floats = (table - origin) * turns
    wrong = np.flatnonzero(~np.isfinite(gains).all(axis=1))
    if len(wrong):
        row = f"row {wrong[0]} of points minus reference is {gains[wrong[0]].tolist()}"
        raise UsageError(f"points and reference must be finite, but {row}; drop or repair it")
    return gains


def _as_array(name: str, given: Tensor | ArrayLike) -> Floats:
    if isinstance(given, Tensor):
        return given.detach().double().cpu().numpy()
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be a table of numbers: {error}") from None


def _non_dominated(gains: Floats) -> NDArray[np.bool_]:
    if gains.size == 0:
        return np.ones(len(gains), dtype=bool)
    if gains.shape[1] > _MOOCORE_COLUMNS:
        beaten = [((gains >= p).all(1) & (gains > p).any(1)).any() for p in gains]
        return ~np.array(beaten, dtype=bool)
    import moocore

    return np.asarray(moocore.is_nondominated(gains, maximise=True, keep_weakly=True), dtype=bool)


def _boxes(gains: Floats) -> tuple[Floats, int]:
    """The boxes that matter, as upper corners ``[n, m]``, in units of ``2 ** exponent``.

    Powers of two cost no rounding, and the largest corner of every objective lands in [0.5, 1),
    so that a product over 40 objectives stays a normal float.
    """
    gains = np.unique(gains[(gains > 0).all(axis=1)], axis=0)
    gains = gains[_non_dominated(gains)]
    if len(gains) == 0:
        return gains, 0
    exponents = np.frexp(gains.max(axis=0))[1]
    return np.ldexp(gains, -exponents), int(exponents.sum())


def _is_quick(n: int, m: int) -> bool:
    return n <= max(_INCLUSION_POINTS, _EXACT_POINTS.get(m, 0))


def _exact(boxes: Floats) -> float:
    n, m = boxes.shape
    if n <= _INCLUSION_POINTS and m > 8:  # from here on, moocore is the slower one
        return _inclusion_exclusion(boxes)
    if m > _MOOCORE_OBJECTIVES:
        limit = f"{_MOOCORE_OBJECTIVES} objectives or {_INCLUSION_POINTS} points"
        raise UsageError(f"exact stops at {limit}, got {m} and {n}; use method='monte-carlo'")
    import moocore

    return float(moocore.hypervolume(boxes, ref=np.zeros(m), maximise=True))


def _inclusion_exclusion(boxes: Floats) -> float:
    """sum over subsets S of (-1)^(|S| + 1) prod_j min_{i in S} box_ij, for few boxes."""
    corners, signs = boxes[:0], np.zeros(0)
    for box in boxes:
        corners = np.concatenate([corners, np.minimum(corners, box), box[None]])
        signs = np.concatenate([signs, -signs, [1.0]])
    # Terms of alternating sign: fsum keeps the rounding of 2^n of them out of the result.
    return math.fsum(signs * corners.prod(axis=1))


def _sample(boxes: Floats, seed: int, target: float, most: int) -> tuple[str, float, float]:
    """The better estimator's name, log of the volume of ``boxes``, relative standard error.

    The choice weighs the variances of two pilots by fixed costs, not by a clock: a seed must
    give the same number on a busy machine.
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
    return name, log_unit + math.log(weights.mean()), error


def _relative_variance(weights: Floats) -> float:
    """Variance over squared mean; at least 1 / n, since n equal samples do not prove certainty."""
    mean = float(weights.mean())
    return max(float(weights.var()) / mean**2, 1.0 / len(weights)) if mean else math.inf


Draw = tuple[float, Callable[[int], Floats]]


def _hit_or_miss(boxes: Floats, rng: np.random.Generator) -> Draw:
    """Points of the box up to the ideal corner: weight 1 inside some box, else 0."""
    ideal, counts = boxes.max(axis=0), _counter(boxes)

    def draw(size: int) -> Floats:
        return (counts(size, lambda j: rng.random(size) * ideal[j]) > 0).astype(np.float64)

    return float(np.log(ideal).sum()), draw


def _karp_luby(boxes: Floats, rng: np.random.Generator) -> Draw:
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
        return _ONES[around.view(np.uint16)].sum(axis=1, dtype=np.int64)

    return counts


def _power(fraction: float, exponent: int) -> float:
    """fraction * 2 ** exponent, rounded nowhere; refused where no float holds it."""
    lost = fraction < np.finfo(np.float64).tiny
    _exp(-math.inf if lost else math.log(fraction) + exponent * math.log(2.0))
    return math.ldexp(fraction, exponent)


def _exp(log: float) -> float:
    if not -708.0 < log < 709.0:
        size = f"about 10^{log / math.log(10.0):.0f}" if math.isfinite(log) else "below 10^-308"
        raise UsageError(f"the hypervolume is {size}, no float holds it; rescale the scores")
    return math.exp(log)
