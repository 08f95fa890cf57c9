"""How many units of a run's network answer to no test sample, and how well it knows its data.

    python benchmarks/silent_units.py runs/one runs/two --out results/recipe/silent-units.md

looks at the network at equal weights. A unit is an output of a linear layer, or a channel of a
convolution: silent, if it is never positive. (A last layer, without a ReLU behind it, counts too.)
"""

import argparse
import shlex
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from lorpman.front.evaluate import scores_of
from lorpman.lab.datasets.splits import batches
from lorpman.lab.runs.directory import data_root, open_run
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.task import unpack


def silent_units(network: nn.Module, inputs: list[Tensor]) -> dict[str, str]:
    """``silent of all`` by layer, for layers with any."""
    active: dict[str, Tensor] = {}

    def watch(name: str, output: Tensor) -> None:
        positive = (output > 0).transpose(0, 1).flatten(1).any(1)
        active[name] = active.get(name, torch.zeros_like(positive)) | positive

    hooks = [
        module.register_forward_hook(lambda _, __, output, name=name: watch(name, output))
        for name, module in network.named_modules()
        if isinstance(module, nn.Linear | nn.Conv2d)
    ]
    for x in inputs:
        network(x)
    for hook in hooks:
        hook.remove()
    counts = {name: (int((~found).sum()), len(found)) for name, found in active.items()}
    return {name: f"{silent} of {units}" for name, (silent, units) in counts.items() if silent}


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    lines = [
        "Units that answer to no test sample, in the network at equal weights, and its scores. "
        f"Made by `{shlex.join(['python', *sys.argv])}`.",
        "",
        "| settings | silent units | training scores | test scores |",
        "|---|---|---:|---:|",
    ]
    for run in options.runs:
        spec, model = open_run(run)
        splits, tasks = spec.load(data_root(None)), spec.tasks()
        network = model.solution(torch.full((len(tasks),), 1 / len(tasks))).eval()
        loaders = [batches(split, EVALUATION_BATCH) for split in (splits.train, splits.test)]
        scores = [scores_of([network], tasks, loader)[0][0].tolist() for loader in loaders]
        silent = silent_units(network, [unpack(batch)[0] for batch in loaders[1]])
        training = spec.training
        cells = [
            f"rate {training.learning_rate:g}, weight decay {training.weight_decay:g}, "
            f"{training.scheduler}",
            "; ".join(f"{name}: {count}" for name, count in silent.items()) or "none",
            *(", ".join(f"{score:.4f}" for score in row) for row in scores),
        ]
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
