"""Keep what a run found, without its weights.

    python benchmarks/keep.py results/multimnist runs/compare/multimnist/lorpman-0 ...

copies settings, notes, fronts and pictures of every run directory below the given folder.
"""

import argparse
import shutil
from pathlib import Path

KEPT = ("run.json", "metrics.jsonl", "measured.json", "front*.json", "front*.png", "ranks.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("to", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    options = parser.parse_args()
    for run in options.runs:
        target = options.to / run.name
        target.mkdir(parents=True, exist_ok=True)
        for pattern in KEPT:
            for path in run.glob(pattern):
                shutil.copyfile(path, target / path.name)
        print(f"{run} -> {target}")


if __name__ == "__main__":
    main()
