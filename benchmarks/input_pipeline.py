"""What share of a training step goes into making the batch: at most 5% on MultiMNIST and Census.

Run with ``LORPMAN_DATA`` set to the directory of the original files. Both times are taken in one
process, alternating, so that a busy machine slows both.
"""

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from lorpman import LowRank, dirichlet
from lorpman.lab.datasets import census, overlaid_pairs
from lorpman.lab.datasets.splits import Batch, Splits, batches
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.networks.mlp import mlp

LIMIT = 0.05


def share(splits: Splits, network: nn.Module, window: int, steps: int = 60) -> float:
    """The median over steps of (time for the batch) / (time for the whole step)."""
    model = LowRank(network, num_tasks=2, rank=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = iter(batches(splits.train, 256, shuffle=True))
    shares = [_step(loader, model, optimizer, window) for _ in range(steps)]
    return statistics.median(shares[5:])


def _step(
    loader: Iterator[Batch], model: LowRank, optimizer: torch.optim.Optimizer, window: int
) -> float:
    start = time.perf_counter()
    x, targets = next(loader)
    ready = time.perf_counter()
    alphas = dirichlet(2, window)
    loss = torch.zeros(())
    for alpha in alphas:
        outputs = model(x, alpha)
        for weight, output, target in zip(alpha, outputs, targets, strict=True):
            loss = loss + weight * functional.cross_entropy(output, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return (ready - start) / (time.perf_counter() - start)


def main() -> None:
    root = Path(os.environ["LORPMAN_DATA"])
    cases = {
        "multimnist": share(overlaid_pairs.load(root), lenet(), window=4),
        "census": share(census.load(root), mlp(), window=2),
    }
    for name, value in cases.items():
        verdict = "ok" if value <= LIMIT else "too slow"
        print(f"{name:12} {value:6.2%} of a step  (limit {LIMIT:.0%})  {verdict}")


if __name__ == "__main__":
    main()
