"""Whether kept runs obey the preference: order and violations of every continuous method.

    python benchmarks/kept_order.py results/reproduce/multimnist-table.json \\
        results/recipe/comparison.json results/reproduce/census-table.json \\
        --out results/order/methods.md

reads the fronts of all runs in these files; nothing is trained.
"""

import argparse
import shlex
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from lorpman.lab.methods.registry import METHODS
from lorpman.lab.reproduce.run_record import RunRecord, read_records


def cells(path: Path, records: Sequence[RunRecord]) -> list[str]:
    """Over all seeds of one method."""
    fronts = [record.front for record in records]
    orders = [front.order() for front in fronts]
    violations, pairs = (sum(getattr(o, key) for o in orders) for key in ("violations", "pairs"))
    return [
        path.stem,
        records[0].problem,
        records[0].method,
        f"{statistics.fmean(float(front.hypervolume()) for front in fronts):.4f}",
        f"{statistics.fmean(order.correlation for order in orders):.2f}",
        ", ".join(f"{order.correlation:.2f}" for order in orders),
        f"{violations} of {pairs}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    continuous = [method.name for method in METHODS.values() if method.kind == "continuous"]
    rows = []
    for path in options.files:
        records = sorted(read_records(path), key=lambda record: record.seed)
        for method in continuous:
            if of_method := [record for record in records if record.method == method]:
                rows.append(cells(path, of_method))
    head = ["file", "problem", "method", "hypervolume", "order", "by seed", "violations"]
    text = [
        f"Kept runs, test fronts, mean over seeds. Made by `{shlex.join(['python', *sys.argv])}`.",
        "",
        "| " + " | ".join(head) + " |",
        "|---|---|---|---:|---:|---|---:|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
