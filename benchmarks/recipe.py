"""Find the settings of recipe ``best`` for MultiMNIST: the same trials for every method.

    python benchmarks/recipe.py lorpman pamal cosmos phn --out results/recipe/search

starts from each method's preset and tries three changes, one after the other, with one seed: six
times the learning rate, rising over five epochs and falling as a cosine, with a mean of the weights
and preferences that are spread; fifteen times the rate; and one change of the method's own. What
raises the hypervolume stays. It is taken on pairs of digits that are in no training pair. Trials
are noted in one JSON file for each method as they end, and are not trained again; all files
together make one Markdown table.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from lorpman.data import multimnist
from lorpman.data.base import Splits, batches
from lorpman.engine import Engine
from lorpman.errors import TrainingDiverged
from lorpman.evaluate import evaluate
from lorpman.fit_spec import EVALUATION_BATCH, fit_spec
from lorpman.runs import Spec, data_root
from lorpman.settings import format_assignments

OWN: dict[str, dict[str, Any]] = {
    "lorpman": {"freeze_epoch": None, "freeze_heads": False, "scale": 4.0},
    "pamal": {"lambda_p": 5.0},
    "cosmos": {"window": 4},
    "phn": {"concentration": 0.5},
}


def steps(spec: Spec) -> list[dict[str, Any]]:
    """The changes to try, in this order; the preset itself is the first trial."""
    rate = spec.training.learning_rate
    schedule = {"ramp_epochs": 5, "scheduler": "cosine"}
    others = {"averaging": 0.998, "sampling": "stratified"}
    return [
        {},
        {"learning_rate": round(6 * rate, 12), **schedule, **others},
        {"learning_rate": round(15 * rate, 12)},
        OWN[spec.method.name],
    ]


def held_out_hypervolume(spec: Spec, splits: Splits) -> float | None:
    """Of this training; None if it diverges."""
    model = spec.build()
    try:
        fit_spec(spec, model, splits, fabric=Engine().start([]), progress=False)
    except TrainingDiverged:
        return None
    held = batches(splits.validation, EVALUATION_BATCH)
    return float(evaluate(model, spec.tasks(), held).hypervolume())


def search(method: str, seed: int, splits: Splits, path: Path) -> None:
    """One row per trial: what was changed, its hypervolume, and whether it stays."""
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    kept: dict[str, Any] = {}
    best = float("-inf")
    for number, change in enumerate(steps(Spec.make("multimnist", method, seed, {}))):
        if number == len(rows):
            spec = Spec.make("multimnist", method, seed, {**kept, **change, "watch_samples": 0})
            volume = held_out_hypervolume(spec, splits)
            stays = volume is not None and volume > best
            rows.append({"method": method, "change": change, "hypervolume": volume, "stays": stays})
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(rows, indent=2) + "\n")
        if rows[number]["stays"]:
            kept, best = {**kept, **change}, rows[number]["hypervolume"]


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| method | change | hypervolume | stays |", "|---|---|---:|---|"]
    for row in rows:
        change = " ".join(format_assignments(row["change"])) or "the preset"
        volume = "diverged" if row["hypervolume"] is None else f"{row['hypervolume']:.4f}"
        stays = "yes" if row["stays"] else ""
        lines.append(f"| {row['method']} | {change} | {volume} | {stays} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="+", choices=list(OWN))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    splits = multimnist.load(data_root(None), held_out=True)
    for method in options.methods:
        search(method, options.seed, splits, options.out / f"{method}.json")
    found = [options.out / f"{method}.json" for method in OWN]
    rows = [row for path in found if path.exists() for row in json.loads(path.read_text())]
    head = (
        f"Hypervolume on pairs of digits that are in no training pair of multimnist, seed "
        f"{options.seed}: the same changes for every method, each on top of those that stay. Made "
        f"by `python benchmarks/recipe.py {' '.join(OWN)} --out {options.out}`."
    )
    options.out.with_suffix(".md").write_text("\n".join([head, "", *table(rows)]) + "\n")


if __name__ == "__main__":
    main()
