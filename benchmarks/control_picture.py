"""One run against retraining, task by task: the score at every weight, from kept results.

    python benchmarks/control_picture.py results/control/multimnist.json --out PICTURE.png

draws for each task of a kept comparison (``benchmarks/keep_runs.py``) its test score over its
weight: a line through the front of each method, in the mean over seeds, with the seeds as a band,
and squares for the networks that were retrained for one preference alone. Networks that were
trained without a task have no score of it worth showing.
"""

import argparse
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from lorpman._files import read_json
from lorpman.front.plot_style import COLOURS
from lorpman.lab.beside_retraining import RETRAIN
from lorpman.lab.reproduce.run_record import RunRecord

RETRAINED = "one network retrained for each"


def by_seed(runs: list[RunRecord], task: int) -> tuple[Tensor, Tensor]:
    """The weights of a task ``[n]``, and its scores ``[seeds, n]``, from small weight to large."""
    weights = runs[0].front.alphas[:, task]
    order = weights.argsort()
    return weights[order], torch.stack([run.front.scores[order, task] for run in runs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kept", type=Path)
    parser.add_argument("--methods", default="lorpman")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = read_json(options.kept, "comparison")["rows"]
    records = {
        row["method"]: [RunRecord.from_json(run) for run in row["runs"]]
        for row in rows
        if row["method"] in [*options.methods.split(","), RETRAIN]
    }
    tasks = records[RETRAIN][0].front.tasks
    figure = Figure(figsize=(4.6 * len(tasks), 3.9), layout="constrained")
    for place, (task, axes) in enumerate(zip(tasks, figure.subplots(1, len(tasks)), strict=True)):
        for number, (method, runs) in enumerate(records.items()):
            weights, scores = by_seed(runs, place)
            colour, mean = COLOURS[number], scores.mean(0)
            if method == RETRAIN:
                trained = weights > 0
                spread = torch.stack([mean - scores.amin(0), scores.amax(0) - mean])
                look = {"fmt": "s", "color": colour, "capsize": 3}
                axes.errorbar(
                    weights[trained], mean[trained], spread[:, trained], label=RETRAINED, **look
                )
            else:
                axes.plot(weights, mean, "o-", ms=4, color=colour, label=f"one run of {method}")
                axes.fill_between(weights, scores.amin(0), scores.amax(0), color=colour, alpha=0.15)
        axes.set_xlabel(f"weight of {task}")
        axes.set_ylabel(f"test score of {task}")
        axes.grid(color="0.92", lw=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=9, loc="lower right")
    seeds = len(records[RETRAIN])
    problem = records[RETRAIN][0].problem
    figure.suptitle(f"{problem}: mean and range of {seeds} seeds", fontsize=11)
    figure.savefig(options.out, dpi=150)


if __name__ == "__main__":
    main()
