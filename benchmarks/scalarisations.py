"""Which scalarisation covers which front: LORPMAN on fronts known in closed form.

    python benchmarks/scalarisations.py --out results/scalarisation

Trains LORPMAN over a point of ten numbers with each scalarisation and three seeds, and writes a
table (Markdown and JSON) and a picture. Takes about six minutes on one core.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

import lorpman as lp
from lorpman.data.base import batches
from lorpman.engine import Engine
from lorpman.fit_spec import fit_spec
from lorpman.plot import COLOURS, save_figure
from lorpman.problems.analytic import KNOWN, distance_to_front
from lorpman.runs import Spec

PROBLEMS = {"zdt2": "ZDT2, concave", "vlmop2": "VLMOP2, concave", "quadratic": "quadratics, convex"}
SCALARISATIONS = ("linear", "chebyshev", "smooth-chebyshev")
PREFERENCES = 101


def front_of(problem: str, scalarisation: str, seed: int) -> lp.Front:
    """Trained, at many preferences: what is missing then is missing from the family itself."""
    settings = {"scalarisation": scalarisation, "smoothing": 0.02, "scheduler": "cosine"}
    spec = Spec.make(problem, "lorpman", seed, settings)
    model, splits = spec.build(), spec.load(Path())
    fit_spec(spec, model, splits, fabric=Engine().start([]), progress=False)
    test = batches(splits.test, 1)
    return lp.evaluate(model, spec.tasks(), test, lp.grid(2, PREFERENCES), label=scalarisation)


def best_volume(problem: str) -> float:
    known = KNOWN[problem]
    points = known.front(torch.linspace(0, 1, 2001, dtype=torch.float64))
    return float(lp.hypervolume(points, known.worst, maximise=False))


def row(problem: str, scalarisation: str, fronts: list[lp.Front]) -> dict[str, Any]:
    parts = [float(front.hypervolume()) / best_volume(problem) for front in fronts]
    away = [distance_to_front(front.scores, KNOWN[problem]).max().item() for front in fronts]
    return {
        "problem": problem,
        "scalarisation": scalarisation,
        "part of the best hypervolume": parts,
        "largest distance from the front": away,
        "order": [front.order().correlation for front in fronts],
    }


def draw(fronts: dict[tuple[str, str], list[lp.Front]], path: Path) -> None:
    figure = Figure(figsize=(4.2 * len(PROBLEMS), 4.2), layout="constrained")
    for axes, (problem, title) in zip(
        figure.subplots(1, len(PROBLEMS)), PROBLEMS.items(), strict=True
    ):
        line = KNOWN[problem].front(torch.linspace(0, 1, 501, dtype=torch.float64))
        axes.plot(*line.T, color="0.75", lw=4, label="the front", zorder=1)
        for place, name in enumerate(SCALARISATIONS):
            scores = fronts[problem, name][0].scores[::5]
            style = {"color": COLOURS[place], "marker": "osD"[place], "ms": 4, "lw": 0}
            axes.plot(*scores.T, label=name, zorder=2 + place, **style)
        axes.set(xlabel="$f_1$", ylabel="$f_2$")
        axes.set_title(title, fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    seeds = (0, 1, 2)
    fronts = {
        (problem, name): [front_of(problem, name, seed) for seed in seeds]
        for problem in PROBLEMS
        for name in SCALARISATIONS
    }
    rows = [row(problem, name, found) for (problem, name), found in fronts.items()]
    lines = [
        "LORPMAN over a point of ten numbers, mean and range of seeds 0, 1, 2, fronts at "
        f"{PREFERENCES} preferences. Made by `python benchmarks/scalarisations.py --out "
        f"{options.out}`.",
        "",
        "| front | scalarisation | part of the best hypervolume | largest distance from the front "
        "| order |",
        "|---|---|---:|---:|---:|",
    ]
    for one in rows:
        part, away = one["part of the best hypervolume"], one["largest distance from the front"]
        lines.append(
            f"| {PROBLEMS[one['problem']]} | {one['scalarisation']} | {statistics.fmean(part):.3f} "
            f"({min(part):.3f} to {max(part):.3f}) | {max(away):.1g} "
            f"| {statistics.fmean(one['order']):.2f} |"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scalarisations.md").write_text("\n".join(lines) + "\n")
    (options.out / "scalarisations.json").write_text(json.dumps(rows, indent=2) + "\n")
    draw(fronts, options.out / "scalarisations.png")


if __name__ == "__main__":
    main()
