"""A front from two single-task networks of MultiMNIST, without and with further training.

    python benchmarks/from_models.py --out results/multimnist/from_models

trains one LeNet on both tasks for a little while, fine-tunes a copy of it for each task alone,
compresses the two by ``lp.LowRank.from_models`` at several ranks, and continues one of them with
theta_0 frozen from the first step. The same is done with two networks that share no start. Needs
the data of multimnist (LORPMAN_DATA).
"""

import argparse
import copy
import shlex
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

import lorpman as lp
from lorpman.lab.datasets import overlaid_pairs
from lorpman.lab.datasets.splits import batches
from lorpman.lab.networks.lenet import lenet
from lorpman.lab.problems.multimnist import tasks
from lorpman.lab.reproduce.run_record import table_json
from lorpman.lab.runs.directory import data_root

RANKS = (1, 2, 4, 8, 16, 64)


def train(network: nn.Module, weights: list[float], data: Any, epochs: int, seed: int) -> nn.Module:
    """A copy of ``network``, trained on the weighted sum of the tasks' losses."""
    network = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for x, targets in batches(data, 256, shuffle=True, generator=order):
            pairs = zip(weights, network(x), targets, strict=True)
            loss = sum(w * nn.functional.cross_entropy(o, y) for w, o, y in pairs if w)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def row(name: str, model: lp.LowRank, test: Any) -> dict[str, Any]:
    """What a front reaches: hypervolume, and each task at its own corner and in the middle."""
    front = lp.evaluate(model, tasks(), batches(test, 1000))
    energy = {n: e for n, e in model.energy_kept.items() if n.endswith("weight")}
    found = {
        "front": name,
        "hypervolume": float(front.hypervolume()),
        "left at its corner": front.scores[-1, 0].item(),
        "right at its corner": front.scores[0, 1].item(),
        "worse task in the middle": front.scores[5].min().item(),
        "least energy kept": min(energy.values(), default=1.0),
        "energy": model.energy_kept,
    }
    print({key: value for key, value in found.items() if key != "energy"}, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start-epochs", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    data = overlaid_pairs.load(data_root(None))
    torch.manual_seed(options.seed)
    start = train(lenet(), [0.5, 0.5], data.train, options.start_epochs, options.seed)
    corners = [[1.0, 0.0], [0.0, 1.0]]
    tuned = [train(start, w, data.train, options.epochs, options.seed) for w in corners]
    rows = []
    for rank in RANKS:
        model = lp.LowRank.from_models(tuned, rank=rank)
        rows.append(row(f"shared start, rank {rank}", model, data.test))
    model = lp.LowRank.from_models(tuned, rank=8)
    order = torch.Generator().manual_seed(options.seed)
    loader = batches(data.train, 256, shuffle=True, generator=order)
    lp.fit(model, tasks(), loader, epochs=1, freeze_epoch=0, seed=options.seed, progress=False)
    rows.append(row("shared start, rank 8, then 1 epoch, theta_0 frozen", model, data.test))
    total = options.start_epochs + options.epochs
    alone = [train(lenet(), w, data.train, total, options.seed) for w in corners]
    model = lp.LowRank.from_models(alone, rank=64)
    rows.append(row("no shared start, full rank", model, data.test))
    write(options.out, rows)


def write(out: Path, rows: list[dict[str, Any]]) -> None:
    columns = [key for key in rows[0] if key != "energy"]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for found in rows:
        cells = [v if isinstance(v, str) else f"{v:.4f}" for k, v in found.items() if k in columns]
        lines.append("| " + " | ".join(cells) + " |")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    out.with_suffix(".json").write_text(table_json(shlex.join(["python", *sys.argv]), rows))


if __name__ == "__main__":
    main()
