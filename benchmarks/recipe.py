"""Find the settings of recipe ``best``: the same steps and trials for every method.

    python benchmarks/recipe.py multimnist --methods lorpman,pamal,cosmos,phn --out results/recipe

starts from each method's preset and tries one change after the other, with one seed: three times
the learning rate with cosine decay, six times, half as many preferences per step (four where it
was one), preferences spread over the simplex, one change of the method's own, a higher rate once
more, and twice as many preferences per step. What raises the validation hypervolume stays.
Writes a table as Markdown and JSON. Runs that are already there are not trained again.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lorpman.compare import run_directory
from lorpman.errors import TrainingDiverged
from lorpman.runs import Spec, data_root, epochs_done, evaluate_run, train
from lorpman.settings import Training, format_assignments

OWN: dict[str, dict[str, Any]] = {
    "lorpman": {"freeze_epoch": None, "freeze_heads": False},
    "pamal": {"lambda_p": 5.0},
    "cosmos": {"inverted": True},
    "phn": {"concentration": 0.5},
    "phn-hvi": {"lambda_c": 1.0},
}


def steps(spec: Spec) -> list[Callable[[Training], dict[str, Any]]]:
    """The changes to try, in this order, each told what stays so far; the preset comes first."""
    rate, window = spec.training.learning_rate, spec.training.window
    cosine = {"scheduler": "cosine", "learning_rate": round(3 * rate, 12)}
    faster = {"learning_rate": round(6 * rate, 12)}
    fastest = {"learning_rate": round(10 * rate, 12)}
    return [
        lambda now: {},
        lambda now: cosine,
        lambda now: faster,
        lambda now: {"window": 4 if window == 1 else window // 2},
        lambda now: {"sampling": "stratified"},
        lambda now: OWN[spec.method.name],
        # Once more: what else has changed may bear it now.
        lambda now: fastest if now.learning_rate == faster["learning_rate"] else faster,
        lambda now: {"window": 2 * now.window},
    ]


def validation_hypervolume(spec: Spec, runs: Path) -> float | None:
    """Of this run, which is trained unless it is there; None if it diverges."""
    run = run_directory(runs, spec)
    try:
        if not (run / "front.json").exists() or epochs_done(run) < spec.training.epochs:
            train(spec, run, data_root(None), resume=(run / "run.json").exists(), progress=False)
        return float(evaluate_run(run, "validation", data_root(None)).hypervolume())
    except TrainingDiverged:
        return None


def search(problem: str, method: str, seed: int, runs: Path) -> list[dict[str, Any]]:
    """One row per trial: what was changed, its validation hypervolume, and whether it stays."""
    kept: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    best = float("-inf")
    for step in steps(Spec.make(problem, method, seed, {})):
        change = step(Spec.make(problem, method, seed, kept).training)
        volume = validation_hypervolume(Spec.make(problem, method, seed, {**kept, **change}), runs)
        stays = volume is not None and volume > best
        if stays:
            kept, best = {**kept, **change}, volume
        rows.append({"method": method, "change": change, "hypervolume": volume, "stays": stays})
        print(rows[-1], flush=True)
    return rows


def table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| method | change | validation hypervolume | stays |", "|---|---|---:|---|"]
    for row in rows:
        change = " ".join(format_assignments(row["change"])) or "the preset"
        volume = "diverged" if row["hypervolume"] is None else f"{row['hypervolume']:.4f}"
        stays = "yes" if row["stays"] else ""
        lines.append(f"| {row['method']} | {change} | {volume} | {stays} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--methods", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/recipe"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    rows = [
        row
        for method in options.methods.split(",")
        for row in search(options.problem, method, options.seed, options.runs)
    ]
    head = (
        f"Validation hypervolume on {options.problem}, seed {options.seed}: the same number of "
        f"trials for every method, each change on top of those that stay. Made by "
        f"`python benchmarks/recipe.py {options.problem} --methods {options.methods} "
        f"--out {options.out}`."
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".md").write_text("\n".join([head, "", *table(rows)]) + "\n")
    options.out.with_suffix(".json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
