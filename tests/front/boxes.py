"""Random fronts without a dominated point, for tests of volumes."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def random_front(n: int, m: int, seed: int) -> Floats:
    """Points on a sphere, pulled towards its middle: no point dominates another."""
    x = 0.5 + np.abs(np.random.default_rng(seed).normal(size=(n, m)))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def clustered_front(n: int, m: int, seed: int) -> Floats:
    """Accuracies as of a trained family: tasks differ a lot, points of the front a little."""
    rng = np.random.default_rng(seed)
    return (0.6 + 0.35 * rng.random(m)) * (0.93 + 0.07 * rng.random((n, m)))
