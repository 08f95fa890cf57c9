"""The peak is that of what lives at once."""

import torch

from lorpman.lab.bench.memory_row import peak_of_tensors


def test_the_peak_counts_what_lives_at_once():
    def one_after_the_other():
        for _ in range(3):
            torch.zeros(1000, 256)

    def together():
        return [torch.zeros(1000, 256) for _ in range(3)]

    size = 4 * 256_000
    assert size <= peak_of_tensors(one_after_the_other) < 1.1 * size
    assert 3 * size <= peak_of_tensors(together) < 3.1 * size
