"""Variants of one problem's settings beside each other: what a setting, or leaving it out, does.

    python benchmarks/variants.py multimnist --recipe best \
        --variant "all" --variant "constant rate: scheduler=constant" --out results/recipe/parts

trains every variant (a name, a colon, and settings as for --set) with every method and seed, and
writes one table as Markdown and JSON. Runs that are already there are not trained again.
"""

import argparse
import itertools
import shlex
import sys
from pathlib import Path
from typing import Any

from lorpman.lab.compare import compare
from lorpman.lab.comparison_table import MethodResults
from lorpman.lab.reproduce.run_record import compact_json, record_run
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


def read_options() -> argparse.Namespace:
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
    return parser.parse_args()


def described(row: dict[str, Any], folder: Path, about: dict[str, Any]) -> dict[str, Any]:
    """A row of the comparison for JSON, with the runs themselves and their automatic ranks."""
    directories = [folder / run for run in row["runs"]]
    last_notes = [read_epoch_log(directory)[-1] for directory in directories]
    ranks = [note["ranks"] for note in last_notes if "ranks" in note]
    runs = [record_run(directory, about["overrides"]).to_json() for directory in directories]
    return {**about, "ranks": ranks, **row, "runs": runs}


def main() -> None:
    options = read_options()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    rows: list[dict[str, Any]] = []
    head = ["problem", "method", "variant", "hypervolume", "order", "violations", "parameters"]
    lines = [head, ["---"] * 3 + ["---:"] * 4]
    variants = [(text, options.recipe) for text in options.variant]
    if options.preset:
        variants.insert(0, ("the preset", None))
    for problem, (text, recipe) in itertools.product(options.problems, variants):
        name, _, settings = text.partition(":")
        overrides = parse_assignments([*options.set, *settings.split()])
        folder = options.runs / problem
        table = compare(
            problem,
            options.methods.split(","),
            seeds,
            folder,
            data_root(None),
            scale=options.scale,
            recipe=recipe,
            overrides=overrides,
        )
        if table.failures:
            raise SystemExit(f"{name}: {table.failures}")
        lines += [cells(problem, name, row) for row in table.rows]
        about = {"variant": name, "recipe": recipe, "scale": options.scale, "overrides": overrides}
        rows += [described(row, folder, about) for row in table.to_json()["rows"]]
        print(lines[-1], flush=True)
    write(options.out, seeds, lines, rows)


def write(out: Path, seeds: list[int], lines: list[list[str]], rows: list[dict[str, Any]]) -> None:
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
    out.parent.mkdir(parents=True, exist_ok=True)
    out.with_suffix(".md").write_text("\n".join(text) + "\n")
    out.with_suffix(".json").write_text(compact_json({"command": command, "rows": rows}))


if __name__ == "__main__":
    main()
