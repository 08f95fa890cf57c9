"""What brings one run closer to retraining: variants of LORPMAN's settings, by regret and reach.

    python benchmarks/control.py multidigits --set fresh_pairs=true \
        --variant "preset" --variant "corners: corners=0.5" --out results/control/multidigits

trains networks for single preferences (the method ``retrain``, with what --set and --retrain say)
and every variant (a name, a colon, and settings as for --set) with every seed, measures each front
at the retrained preferences and on the grid, and writes one table as Markdown and JSON. To choose
among variants, use ``--split validation``. Runs that are already there are not trained again.
"""

import argparse
import shlex
import statistics
import sys
from pathlib import Path
from typing import Any

from lorpman import Front, grid
from lorpman.lab.beside_retraining import control_preferences
from lorpman.lab.compare import run_directory
from lorpman.lab.reproduce.run_record import compact_json
from lorpman.lab.runs.directory import data_root, epochs_done
from lorpman.lab.runs.evaluation import evaluate_run
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train
from lorpman.lab.settings import parse_assignments

HEAD = ["variant", "hypervolume", "regret", "reach", "order on losses", "order"]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem")
    parser.add_argument("--variant", action="append", required=True, metavar="NAME: KEY=VALUE ...")
    parser.add_argument("--method", default="lorpman")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--recipe")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--retrain", default="", metavar="KEY=VALUE ...")
    parser.add_argument("--split", choices=["validation", "test"], default="test")
    parser.add_argument("--runs", type=Path, default=Path("runs/control"))
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def trained(options: argparse.Namespace, method: str, seed: int, given: str) -> Path:
    """The directory of a run, which is trained first if it is not there."""
    overrides = parse_assignments([*options.set, *given.split()])
    spec = Spec.make(options.problem, method, seed, overrides, recipe=options.recipe)
    run = run_directory(options.runs / options.problem, spec)
    if epochs_done(run) < spec.training.epochs or not (run / "front.json").exists():
        train(spec, run, data_root(None), resume=run.exists(), progress=False)
    return run


def measured(run: Path, retrained: Front, split: str) -> dict[str, Any]:
    """All numbers of one run."""
    root = data_root(None)
    control = evaluate_run(run, split, root, alphas=control_preferences(retrained)).control(
        retrained
    )
    front = evaluate_run(run, split, root, alphas=grid(len(retrained.tasks)))
    return {
        "run": run.name,
        "hypervolume": float(front.hypervolume()),
        "control": control.to_json(),
    }


def cells(name: str, found: list[dict[str, Any]]) -> list[str]:
    volumes = [one["hypervolume"] for one in found]
    deviation = f" ± {statistics.stdev(volumes):.2g}" if len(volumes) > 1 else ""

    def mean(read: Any) -> float:
        return statistics.fmean(read(one["control"]) for one in found)

    return [
        name,
        f"{statistics.fmean(volumes):.4f}{deviation}",
        f"{mean(lambda c: c['regret']):+.1%}",
        f"{mean(lambda c: c['reach']):+.4f}",
        f"{mean(lambda c: c['order_on_losses']['correlation']):.2f}",
        f"{mean(lambda c: c['order']['correlation']):.2f}",
    ]


def main() -> None:
    options = read_options()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    runs = {seed: trained(options, "retrain", seed, options.retrain) for seed in seeds}
    retrained = {
        seed: evaluate_run(run, options.split, data_root(None)) for seed, run in runs.items()
    }
    volumes = [float(front.hypervolume()) for front in retrained.values()]
    blank = [""] * 4
    rows: list[dict[str, Any]] = []
    lines = [HEAD, ["---"] + ["---:"] * (len(HEAD) - 1)]
    lines.append([f"retrain, {len(retrained[seeds[0]])} networks",
                  f"{statistics.fmean(volumes):.4f}", *blank])  # fmt: skip
    for text in options.variant:
        name, _, settings = text.partition(":")
        found = []
        for seed in seeds:
            run = trained(options, options.method, seed, settings)
            found.append(measured(run, retrained[seed], options.split))
        lines.append(cells(name, found))
        rows.append({"variant": name, "settings": settings.strip(), "runs": found})
        print(" | ".join(lines[-1]), flush=True)
    points = {seed: front.scores.tolist() for seed, front in retrained.items()}
    write(options, seeds, lines, {"retrained": points, "rows": rows})


def write(
    options: argparse.Namespace, seeds: list[int], lines: list[list[str]], found: dict[str, Any]
) -> None:
    command = shlex.join(["python", *sys.argv])
    text = [
        f"{options.problem}, {options.split} split, "
        + ("mean of seeds " if len(seeds) > 1 else "seed ")
        + f"{', '.join(map(str, seeds))}. "
        "Regret: the mean excess of the weighted loss over networks retrained for single "
        "preferences (below 0: better than retraining); reach: the mean gain in a task's score "
        "where all weight is on it; order: the rank correlation between a task's weight and its "
        "loss or score, 1 if more weight is always obeyed.",
        "",
        *("| " + " | ".join(line) + " |" for line in lines),
        "",
        "Made by:",
        "",
        f"    {command}",
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".md").write_text("\n".join(text) + "\n")
    described = {"command": command, "split": options.split, **found}
    options.out.with_suffix(".json").write_text(compact_json(described))


if __name__ == "__main__":
    main()
