"""Variants of one problem's settings beside each other: what a setting, or leaving it out, does.

    python benchmarks/variants.py multimnist --recipe best \
        --variant "all" --variant "constant rate: scheduler=constant" --out results/recipe/parts

trains every variant (a name, a colon, and settings as for --set) with every method and seed, and
writes one table as Markdown and JSON. Runs that are already there are not trained again.
"""

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from lorpman.lab.compare import compare
from lorpman.lab.comparison_table import MethodResults
from lorpman.lab.runs.directory import data_root
from lorpman.lab.runs.epoch_log import read_epoch_log
from lorpman.lab.settings import parse_assignments


def cells(problem: str, variant: str, row: MethodResults) -> list[str]:
    deviation = "" if row.deviation is None else f" ± {row.deviation:.2g}"
    digits = ".4f" if row.mean >= 0.01 else ".3g"
    order = "" if row.order is None else f"{row.order:.2f}"
    violations = "" if row.order is None else f"{row.violations} of {row.pairs}"
    volume = f"{row.mean:{digits}}{deviation}"
    return [problem, row.method, variant, volume, order, violations, f"{row.parameters:,}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="+")
    parser.add_argument("--methods", default="lorpman")
    parser.add_argument("--variant", action="append", required=True, metavar="NAME: KEY=VALUE ...")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--scale", choices=["paper", "laptop"], default="paper")
    parser.add_argument("--recipe")
    parser.add_argument("--preset", action="store_true", help="a row without recipe, first")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/variants"))
    options = parser.parse_args()

    seeds = [int(seed) for seed in options.seeds.split(",")]
    rows: list[dict[str, Any]] = []
    head = ["problem", "method", "variant", "hypervolume", "order", "violations", "parameters"]
    lines = [head, ["---"] * 3 + ["---:"] * 4]
    variants = [(text, options.recipe) for text in options.variant]
    if options.preset:
        variants.insert(0, ("the preset", None))
    for problem in options.problems:
        for text, recipe in variants:
            name, _, settings = text.partition(":")
            overrides = parse_assignments([*options.set, *settings.split()])
            table = compare(
                problem,
                options.methods.split(","),
                seeds,
                options.runs / problem,
                data_root(None),
                scale=options.scale,
                recipe=recipe,
                overrides=overrides,
            )
            if table.failures:
                raise SystemExit(f"{name}: {table.failures}")
            lines += [cells(problem, name, row) for row in table.rows]
            for row in table.to_json()["rows"]:
                notes = [read_epoch_log(options.runs / problem / run)[-1] for run in row["runs"]]
                # Of automatic ranks, those at the end, by run.
                ranks = [note["ranks"] for note in notes if "ranks" in note]
                about = {"variant": name, "recipe": recipe, "scale": options.scale}
                rows.append({**about, "overrides": overrides, "ranks": ranks, **row})
            print(lines[-1], flush=True)
    command = shlex.join(["python", *sys.argv])
    text = [
        "Test hypervolume, "
        + ("mean ± standard deviation of seeds " if len(seeds) > 1 else "seed ")
        + f"{', '.join(map(str, seeds))}. Order: the rank correlation between a task's weight and "
        "its score (1: more weight is always obeyed); violations: pairs of preferences, over all "
        "seeds, where it is not.",
        "",
        *("| " + " | ".join(line) + " |" for line in lines),
        "",
        "Made by:",
        "",
        f"    {command}",
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".md").write_text("\n".join(text) + "\n")
    options.out.with_suffix(".json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
