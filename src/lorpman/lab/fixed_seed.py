"""A seed for a while: what is made inside is the same each time, and nobody outside notices."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def fixed_seed(seed: int) -> Iterator[None]:
    """Inside this context the global generators start from ``seed``; after it, all is as before.

    Those of torch on the CPU, of numpy and of Python.

    Args:
        seed: Any whole number.

    >>> with fixed_seed(0):
    ...     first = torch.rand(1)
    >>> with fixed_seed(0):
    ...     bool(torch.rand(1) == first)
    True
    """
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    seed_all(seed)
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        torch.set_rng_state(before[2])


def seed_all(seed: int) -> None:
    """Start the global generators of torch, numpy and Python from ``seed``.

    Args:
        seed: Any whole number.
    """
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    torch.manual_seed(seed)
