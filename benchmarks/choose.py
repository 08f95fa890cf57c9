"""Choose a problem's settings as the paper does: the best validation hypervolume on a grid.

    python benchmarks/choose.py multimnist --out results/multimnist/choice

trains every combination of the preset's search ranges with one seed, then the best one with
frozen heads, and writes the table of validation hypervolumes as Markdown and JSON. Runs that are
already there are not trained again.
"""

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

from lorpman.problems import get_problem
from lorpman.runs import Spec, data_root, evaluate_run, train


def validation_hypervolume(problem: str, overrides: dict[str, Any], runs: Path, seed: int) -> float:
    """Train with ``overrides``, unless that run is there, and score it on validation data."""
    name = "-".join(f"{key}={value}" for key, value in overrides.items())
    run = runs / f"{problem}-{name}-{seed}"
    spec = Spec.make(problem, "lorpman", seed, overrides)
    if not (run / "front.json").exists():
        train(spec, run, data_root(None), resume=(run / "run.json").exists(), progress=False)
    volume = float(evaluate_run(run, "validation", data_root(None)).hypervolume())
    print(f"{name}: {volume:.4f}", flush=True)
    return volume


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=Path, default=Path("runs/choose"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    search = get_problem(options.problem).preset().search
    rows = []
    for values in itertools.product(*search.values()):
        overrides = dict(zip(search, values, strict=True))
        volume = validation_hypervolume(options.problem, overrides, options.runs, options.seed)
        rows.append({**overrides, "freeze_heads": False, "hypervolume": volume})
    best = max(rows, key=lambda row: row["hypervolume"])
    frozen = {**{key: best[key] for key in search}, "freeze_heads": True}
    volume = validation_hypervolume(options.problem, frozen, options.runs, options.seed)
    rows.append({**frozen, "hypervolume": volume})

    rows.sort(key=lambda row: -row["hypervolume"])
    columns = [*search, "freeze_heads", "hypervolume"]
    lines = [
        f"Validation hypervolume of LORPMAN on {options.problem}, seed {options.seed}, by the "
        f"settings that the paper tunes. Made by `python benchmarks/choose.py {options.problem} "
        f"--out {options.out}`.",
        "",
        "| " + " | ".join(column.replace("_", " ") for column in columns) + " |",
        "|" + "---|" * len(columns),
    ]
    for row in rows:
        cells = [row[c] if c != "hypervolume" else f"{row[c]:.4f}" for c in columns]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    options.out.with_suffix(".json").write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
