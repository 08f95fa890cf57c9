"""What re-estimating BatchNorm at the chosen preference changes.

    python benchmarks/recalibrate.py

trains a small convolutional network with BatchNorm on multidigits, at two scales of the deltas,
and prints the test scores of three preferences with the statistics of training, shared by all
preferences, and with statistics of their own.
"""

import argparse

import torch
from torch import nn

import lorpman as lp
from lorpman.front.evaluate import scores_of
from lorpman.lab.datasets import multidigits
from lorpman.lab.datasets.splits import batches
from lorpman.lab.problems.registry import get_problem


def network() -> lp.SharedBottom:
    """The network of multidigits, with BatchNorm."""
    bottom = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 3 * 3, 16),
        nn.ReLU(),
    )
    return lp.SharedBottom(bottom, [nn.Linear(16, 10), nn.Linear(16, 10)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    splits = multidigits.load()
    tasks = get_problem("multidigits").tasks(None)
    print("| scale | preference | shared statistics | own statistics, 20 batches |")
    print("|---|---|---|---|")
    for scale in (1.0, 4.0):
        torch.manual_seed(options.seed)
        model = lp.LowRank(network(), 2, rank=4, scale=scale)
        order = torch.Generator().manual_seed(options.seed)
        loader = batches(splits.train, 128, shuffle=True, generator=order)
        lp.fit(
            model,
            tasks,
            loader,
            epochs=options.epochs,
            objective=lp.Linear() + lp.Orthogonality(),
            optimizer=lambda parameters: torch.optim.Adam(parameters, lr=2e-3),
            seed=options.seed,
            progress=False,
        )
        for alpha in ([1.0, 0.0], [0.5, 0.5], [0.0, 1.0]):
            net, cells = model.solution(torch.tensor(alpha)).eval(), []
            for batches_used in (0, 20):
                if batches_used:
                    lp.recalibrate(net, loader, batches_used)
                with torch.no_grad():
                    ((scores, _),) = scores_of([net], tasks, batches(splits.test, 1000))
                cells.append(" ".join(f"{score:.4f}" for score in scores.tolist()))
            print(f"| {scale:g} | {alpha} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
