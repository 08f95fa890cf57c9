"""Which points of a front no other point beats, and how much better each is than a reference."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.task import signs

Floats = NDArray[np.float64]

# moocore refuses wider tables.
_MOOCORE_COLUMNS = 255


def non_dominated_mask(
    points: Tensor | ArrayLike, maximise: bool | Sequence[bool] = True
) -> Tensor:
    """Which points no other one beats; all copies of a point are kept.

    Point q beats p if it is as good in every objective and better in one.

    Args:
        points: ``[n, m]``.
        maximise: Whether bigger is better: one flag for all objectives, or one for each.

    Returns:
        Bool ``[n]``.

    Raises:
        UsageError: If ``points`` is no table of finite numbers.

    >>> non_dominated_mask([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]])
    tensor([ True,  True, False])
    """
    return torch.from_numpy(best_rows(gains_over(points, 0.0, maximise)))


def gains_over(
    points: Tensor | ArrayLike,
    reference: float | Sequence[float] | Tensor | Floats,
    maximise: bool | Sequence[bool],
) -> Floats:
    """How much better than a reference points are.

    Args:
        points: ``[n, m]``.
        reference: One number for all objectives, or one for each.
        maximise: Whether bigger is better: one flag for all objectives, or one for each.

    Returns:
        Differences turned so that bigger is better, ``[n, m]`` in float64.

    Raises:
        UsageError: If shapes do not fit, or a difference is not finite.
    """
    table = as_array("points", points)
    if table.ndim and len(table) == 0:
        return np.zeros((0, 1))
    if table.ndim != 2 or table.shape[1] == 0:
        fix = "pass one row per point and one column per objective, as in [[0.9, 0.8]]"
        raise UsageError(f"points must have shape [n, m], got {list(table.shape)}; {fix}")
    origin, turns = as_array("reference", reference), signs(as_array("maximise", maximise) != 0)
    for name, given in (("reference", origin), ("maximise", turns)):
        if given.shape not in ((), (table.shape[1],)):
            expected = f"one value or {table.shape[1]}, one per objective"
            raise UsageError(f"{name} must hold {expected}, got shape {list(given.shape)}")
    # What overflows is refused below, in words instead of a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        gains: Floats = (table - origin) * turns
    wrong = np.flatnonzero(~np.isfinite(gains).all(axis=1))
    if len(wrong):
        row = f"row {wrong[0]} of points minus reference is {gains[wrong[0]].tolist()}"
        raise UsageError(f"points and reference must be finite, but {row}; drop or repair it")
    return gains


def as_array(name: str, given: Tensor | ArrayLike) -> Floats:
    """``given`` as doubles.

    Args:
        name: What it is called, for the error.
        given: A table of numbers, a row of them, or one.

    Raises:
        UsageError: If it is anything else.
    """
    try:
        if isinstance(given, Tensor):
            if given.is_complex():
                raise TypeError("complex numbers have no order")
            return given.detach().double().cpu().numpy()
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise UsageError(f"{name} must be a table of numbers: {reason}") from None


def best_rows(gains: Floats) -> NDArray[np.bool_]:
    """Which rows no other one beats.

    Args:
        gains: ``[n, m]``, where bigger is better.

    Returns:
        Bool ``[n]``.
    """
    if gains.size == 0:
        return np.ones(len(gains), dtype=bool)
    # Slower, since it compares all pairs, but right for any number of columns.
    if gains.shape[1] > _MOOCORE_COLUMNS:
        beaten = [((gains >= p).all(1) & (gains > p).any(1)).any() for p in gains]
        return ~np.array(beaten, dtype=bool)
    import moocore

    return np.asarray(moocore.is_nondominated(gains, maximise=True, keep_weakly=True), dtype=bool)
