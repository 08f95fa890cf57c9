"""How good a front is, as one number: the volume its points dominate, exact or sampled."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.front.dominance import Floats, best_rows, gains_over
from lorpman.front.hypervolume_sampling import sample_volume

# Most points for which moocore answers within about half a second, by number of objectives,
# measured on fronts without a dominated point. It cannot be interrupted, so these are strict.
_EXACT_POINTS = {2: 100_000, 3: 20_000, 4: 5_000, 5: 4_000, 6: 600}
_EXACT_POINTS |= {7: 180, 8: 100, 9: 55, 10: 40, 11: 30, 12: 24}
_MOOCORE_OBJECTIVES = 31
_INCLUSION_POINTS = 16  # 2^16 subsets: tens of milliseconds


class Hypervolume(float):
    """A volume that knows its standard error (0.0 when exact) and how it was computed.

    Args:
        value: The volume.
        stderr: Its standard error.
        method: How it was computed.

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
        """The volume as a plain float."""
        return float(self)

    # A triple as well as a float: ``value, stderr, method = volume``.
    def __iter__(self) -> Iterator[float | str]:
        return iter((self.value, self.stderr, self.method))

    def __getitem__(self, index: int) -> float | str:
        return tuple(self)[index]

    # Without it, copies and pickles would lose the error and the method.
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
    """The volume between a reference and points: ``|union_i [reference, point_i]|``.

    The same points, in any order, and the same ``seed`` give the same number, however busy the
    machine.

    Args:
        points: ``[n, m]``.
        reference: The worst that counts: one number for all objectives, or one for each.
        maximise: Whether bigger is better: one flag for all objectives, or one for each.
        method: "exact", "monte-carlo", or "auto": exact where that takes under a second. Forcing
            "exact" beyond 10 objectives can take hours, and cannot be interrupted.
        seed: Fixes what sampling gives.
        target_stderr: Sampling stops at this relative standard error.
        max_samples: Sampling stops at this many samples, too.

    Returns:
        A float that knows its standard error and its method.

    Raises:
        UsageError: If points or options make no sense, or if no float holds the volume.

    >>> hypervolume([[0.9, 0.9]], reference=0.0)
    Hypervolume(0.81, exact)
    >>> tuple(hypervolume([[0.5, 1.5], [1.5, 0.5]], reference=[2.0, 2.0], maximise=False))
    (1.25, 0.0, 'exact')
    """
    if method not in ("auto", "exact", "monte-carlo"):
        raise UsageError(f"method must be 'auto', 'exact' or 'monte-carlo', got '{method}'")
    if not target_stderr > 0 or max_samples < 1:
        given = f"got {target_stderr} and {max_samples}"
        raise UsageError(f"target_stderr and max_samples must be positive, {given}")
    boxes, exponent = _boxes(gains_over(points, reference, maximise))
    n, m = boxes.shape
    if n == 0:
        return Hypervolume(0.0)
    if method == "exact" or (method == "auto" and _is_quick(n, m)):
        return Hypervolume(_power(_exact(boxes), exponent))
    sampled = sample_volume(boxes, seed, target_stderr, max_samples)
    value = _exp(sampled.log_volume + exponent * math.log(2.0))
    return Hypervolume(value, value * sampled.relative_error, f"monte-carlo: {sampled.estimator}")


def _boxes(gains: Floats) -> tuple[Floats, int]:
    """The boxes that matter, as upper corners ``[n, m]``, in units of ``2 ** exponent``.

    Powers of two cost no rounding, and the largest corner of every objective lands in [0.5, 1),
    so that a product over 40 objectives stays a normal float.
    """
    # A point that is no better than the reference in some task has no volume. Sorted and without
    # copies, so that the result does not depend on the order of the points.
    gains = np.unique(gains[(gains > 0).all(axis=1)], axis=0)
    gains = gains[best_rows(gains)]
    if len(gains) == 0:
        return gains, 0
    exponents = np.frexp(gains.max(axis=0))[1]
    return np.ldexp(gains, -exponents), int(exponents.sum())


def _is_quick(n: int, m: int) -> bool:
    """Whether ``n`` points of ``m`` objectives take under a second."""
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


def _power(fraction: float, exponent: int) -> float:
    """fraction * 2 ** exponent, rounded nowhere; refused where no float holds it."""
    # Below the smallest normal float, digits are lost already.
    lost = fraction < np.finfo(np.float64).tiny
    _exp(-math.inf if lost else math.log(fraction) + exponent * math.log(2.0))
    return math.ldexp(fraction, exponent)


def _exp(log: float) -> float:
    """``exp(log)``; refused where no normal float holds it."""
    # exp(-708) and exp(709) are about the smallest and the largest normal float.
    if not -708.0 < log < 709.0:
        size = f"about 10^{log / math.log(10.0):.0f}" if math.isfinite(log) else "below 10^-308"
        raise UsageError(f"the hypervolume is {size}, no float holds it; rescale the scores")
    return math.exp(log)
