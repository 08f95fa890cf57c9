"""Whether kept runs obey the preference: order and violations of every continuous method.

    python benchmarks/kept_order.py results/multimnist results/recipe results/census \\
        --out results/order/methods.md

reads the fronts of all runs METHOD-SEED in these folders; nothing is trained.
"""

import argparse
import re
import shlex
import statistics
import sys
from pathlib import Path

from lorpman.front.front import Front
from lorpman.lab.methods.registry import METHODS
from lorpman.lab.runs.directory import read_spec


def row(folder: Path, method: str) -> list[str] | None:
    """Over all seeds of a method in ``folder``; None if there is no run of it."""
    # Not those of phn-hvi for phn.
    runs = sorted(run for run in folder.iterdir() if re.fullmatch(rf"{method}-\d+", run.name))
    if not runs:
        return None
    fronts = [Front.load(run / "front.json") for run in runs]
    orders = [front.order() for front in fronts]
    violations, pairs = (sum(getattr(o, key) for o in orders) for key in ("violations", "pairs"))
    return [
        str(folder),
        read_spec(runs[0]).problem.name,
        method,
        f"{statistics.fmean(float(front.hypervolume()) for front in fronts):.4f}",
        f"{statistics.fmean(order.correlation for order in orders):.2f}",
        ", ".join(f"{order.correlation:.2f}" for order in orders),
        f"{violations} of {pairs}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    continuous = [method.name for method in METHODS.values() if method.kind == "continuous"]
    rows = [row(folder, method) for folder in options.folders for method in continuous]
    head = ["folder", "problem", "method", "hypervolume", "order", "by seed", "violations"]
    text = [
        f"Kept runs, test fronts, mean over seeds. Made by `{shlex.join(['python', *sys.argv])}`.",
        "",
        "| " + " | ".join(head) + " |",
        "|---|---|---|---:|---:|---|---:|",
        *("| " + " | ".join(cells) + " |" for cells in rows if cells is not None),
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
