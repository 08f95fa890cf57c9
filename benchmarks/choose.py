"""Choose a problem's settings as the paper does: by validation hypervolume, over its ranges.

    python benchmarks/choose.py multimnist --out results/multimnist/choice

starts from the first value of every range in the preset and improves one setting after the
other; ``--grid`` tries all combinations instead. Then the best one is tried with frozen heads.
Writes the table as Markdown and JSON. Runs that are already there are not trained again.
"""

import argparse
import itertools
import shlex
import sys
from pathlib import Path
from typing import Any

from lorpman.lab.problems.registry import get_problem
from lorpman.lab.reproduce.run_record import table_json
from lorpman.lab.runs.directory import data_root
from lorpman.lab.runs.evaluation import evaluate_run
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train


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
    parser.add_argument("--grid", action="store_true")
    options = parser.parse_args()

    search = get_problem(options.problem).preset().search

    rows: list[dict[str, Any]] = []

    def best() -> dict[str, Any]:
        return {key: max(rows, key=lambda row: row["hypervolume"])[key] for key in search}

    def attempt(overrides: dict[str, Any]) -> None:
        if any(all(row.get(k, False) == v for k, v in overrides.items()) for row in rows):
            return
        volume = validation_hypervolume(options.problem, overrides, options.runs, options.seed)
        rows.append({"freeze_heads": False, **overrides, "hypervolume": volume})

    if options.grid:
        for values in itertools.product(*search.values()):
            attempt(dict(zip(search, values, strict=True)))
    else:
        attempt({key: values[0] for key, values in search.items()})
        for key, values in search.items():
            for value in values:
                attempt({**best(), key: value})
    attempt({**best(), "freeze_heads": True})

    rows.sort(key=lambda row: -row["hypervolume"])
    columns = [*search, "freeze_heads", "hypervolume"]
    lines = [
        f"Validation hypervolume of LORPMAN on {options.problem}, seed {options.seed}, by the "
        f"settings that the paper tunes. Made by `python benchmarks/choose.py {options.problem} "
        f"--out {options.out}{' --grid' if options.grid else ''}`.",
        "",
        "| " + " | ".join(column.replace("_", " ") for column in columns) + " |",
        "|" + "---|" * len(columns),
    ]
    for row in rows:
        cells = [row[c] if c != "hypervolume" else f"{row[c]:.4f}" for c in columns]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".md").write_text("\n".join(lines) + "\n")
    options.out.with_suffix(".json").write_text(table_json(shlex.join(["python", *sys.argv]), rows))


if __name__ == "__main__":
    main()
