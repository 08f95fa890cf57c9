"""What multi-forward regularisation does to the order of the scores, in both signs.

    python benchmarks/order.py multidigits census --out results/order

trains LORPMAN and PaMaL without the regulariser, with it as it is meant (more weight must not
score worse) and as the paper prints it (the other way round), with three seeds each, and writes
one table as Markdown and JSON.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from lorpman.compare import compare
from lorpman.runs import data_root

SIGNS: dict[str, dict[str, Any]] = {
    "none": {"lambda_p": 0.0},
    "as meant": {"lambda_p": 5.0, "as_printed": False},
    "as printed": {"lambda_p": 5.0, "as_printed": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/order"))
    options = parser.parse_args()
    rows = []
    lines = [
        "Order is the rank correlation between a task's weight and its score (1: more weight is "
        "always obeyed), violations the pairs of preferences where it is not; mean and sum of "
        f"seeds 0, 1, 2. Made by `python benchmarks/order.py {' '.join(options.problems)} "
        f"--out {options.out}`.",
        "",
        "| problem | method | regulariser | order | violations | hypervolume |",
        "|---|---|---|---:|---:|---:|",
    ]
    for problem in options.problems:
        for sign, settings in SIGNS.items():
            table = compare(
                problem,
                ["lorpman", "pamal"],
                [0, 1, 2],
                options.runs / problem,
                data_root(None),
                overrides=settings,
            )
            for row in table.rows:
                found = {"problem": problem, "regulariser": sign, "settings": settings}
                rows.append(
                    {
                        **found,
                        **next(r for r in table.to_json()["rows"] if r["method"] == row.method),
                    }
                )
                lines.append(
                    f"| {problem} | {row.method} | {sign} | {row.order:.2f} "
                    f"| {row.violations} of {row.pairs} | {row.mean:.4f} ± {row.deviation:.2g} |"
                )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    options.out.with_suffix(".json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
