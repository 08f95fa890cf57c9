import random

import numpy as np
import torch

from lorpman.lab.fixed_seed import fixed_seed, seed_all


def _draw():
    return random.random(), np.random.rand(), torch.rand(1).item()  # noqa: NPY002


def test_inside_it_is_the_same_each_time_and_outside_nothing_has_happened():
    seed_all(5)
    before = _draw()
    seed_all(5)
    with fixed_seed(1):
        first = _draw()
    assert _draw() == before
    with fixed_seed(1):
        assert _draw() == first
