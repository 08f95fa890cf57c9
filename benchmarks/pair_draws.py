"""Kept runs on other draws of MultiMNIST's test pairs: how much of a difference is the draw's.

    python benchmarks/pair_draws.py runs/one runs/two --draws 12 --out results/recipe/draws.md

Every draw has 10,000 pairs of the same test digits, as the one that all results use.
"""

import argparse
import os
import shlex
import statistics
import sys
import tempfile
from pathlib import Path

from lorpman.front.evaluate import evaluate
from lorpman.lab.datasets import overlaid_pairs
from lorpman.lab.datasets.splits import batches
from lorpman.lab.runs.directory import data_root, open_run
from lorpman.lab.runs.evaluation import EVALUATION_BATCH


def volumes(runs: list[Path], seed: int) -> list[float]:
    """Test hypervolume of every run on the pairs that ``seed`` draws."""
    splits = overlaid_pairs.load(data_root(None), sizes=(1, 1, 10_000), seed=seed)
    loader = batches(splits.test, EVALUATION_BATCH)
    opened = [open_run(run) for run in runs]
    return [float(evaluate(model, spec.tasks(), loader).hypervolume()) for spec, model in opened]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    lines = ["| draw | each run | mean |", "|---:|---|---:|"]
    means = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["LORPMAN_CACHE"] = cache
        for seed in range(1, options.draws + 1):
            found = volumes(options.runs, seed)
            means.append(statistics.fmean(found))
            each = ", ".join(f"{volume:.4f}" for volume in found)
            lines.append(f"| {seed} | {each} | {means[-1]:.4f} |")
            print(lines[-1], flush=True)
    text = [
        f"Test hypervolume of {len(options.runs)} runs on {options.draws} other draws of 10,000 "
        f"pairs of test digits: {statistics.fmean(means):.4f} in the mean; the means differ by "
        f"{statistics.stdev(means):.4f} (standard deviation), from {min(means):.4f} to "
        f"{max(means):.4f}. Made by `{shlex.join(['python', *sys.argv])}`.",
        "",
        *lines,
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
