"""Find the settings of recipe ``best``: as many trials for every method, and the same ones.

    python benchmarks/recipe.py multimnist --methods lorpman,pamal,cosmos,phn,phn-hvi \\
        --out results/recipe/search

starts from each method's preset and tries seven changes, one after the other, with one seed:
three times the learning rate with cosine decay, six times, another number of preferences per step,
preferences spread over the simplex, one change of the method's own, together a mean of the
weights, preferences nearer to the middle and a first epoch at a fifth of the rate, and weight
decay. What raises the validation hypervolume stays. Writes a table as Markdown and JSON. Runs that
are already there are not trained again; with ``--no-training`` a method's search ends at the first
one that is not.
"""

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from lorpman.errors import TrainingDiverged
from lorpman.lab.compare import run_directory
from lorpman.lab.reproduce.run_record import table_json
from lorpman.lab.runs.directory import data_root, epochs_done
from lorpman.lab.runs.evaluation import evaluate_run
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train
from lorpman.lab.settings import format_assignments

OWN: dict[str, dict[str, Any]] = {
    "lorpman": {"freeze_epoch": None, "freeze_heads": False},
    "pamal": {"lambda_p": 5.0},
    "cosmos": {"inverted": True},
    "phn": {"concentration": 0.5},
}


def steps(spec: Spec) -> list[dict[str, Any]]:
    """The changes to try, in this order; the preset itself is the first trial."""
    training, smooth = spec.training, {"averaging": 0.998, "ramp_epochs": 1}
    shrink = {"weight_decay": 1e-3}
    rate, window = training.learning_rate, training.window
    if spec.method.name == "phn-hvi":
        # It draws rays of its own, one in each of as many bins as the window is wide, so there is
        # nothing to spread, and two changes of its own instead; its edge keeps rays near the
        # middle. It begins with an epoch at a fifth of the rate, so its rate is the later one.
        rate *= training.step_factor
        decay = {"scheduler": "cosine", "learning_rate": round(3 * rate, 12), "ramp_epochs": 1}
        faster = {"learning_rate": round(6 * rate, 12)}
        own = [{"lambda_c": 1.0}, {"weight_dropout": 0.0}]
        return [{}, {"window": 8}, decay, faster, *own, {**smooth, "edge": 0.4}, shrink]
    decay = {"scheduler": "cosine", "learning_rate": round(3 * rate, 12)}
    faster = {"learning_rate": round(6 * rate, 12)}
    spread, own = {"sampling": "stratified"}, OWN[spec.method.name]
    last = {**smooth, "concentration": 4.0}
    if window == 1:
        # One preference cannot be spread, and a wider step is what these methods lack most.
        return [{}, decay, faster, {"window": 4}, spread, own, last, shrink]
    return [{}, decay, spread, own, faster, {"window": 8}, last, shrink]


def validation_hypervolume(spec: Spec, runs: Path) -> float | None:
    """Of this run, which is trained unless it is there; None if it diverges."""
    run = run_directory(runs, spec)
    try:
        if not (run / "front.json").exists() or epochs_done(run) < spec.training.epochs:
            train(spec, run, data_root(None), resume=(run / "run.json").exists(), progress=False)
        return float(evaluate_run(run, "validation", data_root(None)).hypervolume())
    except TrainingDiverged:
        return None


def search(
    problem: str, method: str, seed: int, runs: Path, training: bool
) -> list[dict[str, Any]]:
    """One row per trial: what was changed, its validation hypervolume, and whether it stays."""
    kept: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    best = float("-inf")
    for change in steps(Spec.make(problem, method, seed, {})):
        spec = Spec.make(problem, method, seed, {**kept, **change})
        if not training and epochs_done(run_directory(runs, spec)) < spec.training.epochs:
            break
        volume = validation_hypervolume(spec, runs)
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
    parser.add_argument("--no-training", action="store_true")
    options = parser.parse_args()

    rows = [
        row
        for method in options.methods.split(",")
        for row in search(
            options.problem, method, options.seed, options.runs, not options.no_training
        )
    ]
    head = (
        f"Validation hypervolume on {options.problem}, seed {options.seed}: as many trials for "
        f"every method, each on top of those that stay. Made by "
        f"`python benchmarks/recipe.py {options.problem} --methods {options.methods} "
        f"--out {options.out}`."
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".md").write_text("\n".join([head, "", *table(rows)]) + "\n")
    options.out.with_suffix(".json").write_text(table_json(shlex.join(["python", *sys.argv]), rows))


if __name__ == "__main__":
    main()
