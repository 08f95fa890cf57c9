"""Which scalarisation covers which front, on fronts known in closed form.

    python benchmarks/scalarisations.py --out results/scalarisation

Trains LORPMAN, whose family of networks is affine in the preference, and PHN, whose family is any
curve, over a point of ten numbers, with each scalarisation and three seeds. Writes a table
(Markdown and JSON) and a picture. Takes about ten minutes on one core.
"""

import argparse
import shlex
import statistics
import sys
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure

import lorpman as lp
from lorpman.front.plot_style import COLOURS, save_figure
from lorpman.lab.datasets.splits import batches
from lorpman.lab.problems.known_fronts import KNOWN, distance_to_front
from lorpman.lab.reproduce.run_record import table_json
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import fit_spec
from lorpman.training.devices import Engine
from lorpman.training.options import Placement

PROBLEMS = {"zdt2": "ZDT2, concave", "vlmop2": "VLMOP2, concave", "quadratic": "quadratics, convex"}
METHODS = ("lorpman", "phn")
SCALARISATIONS = ("linear", "chebyshev", "smooth-chebyshev")
SMOOTHING = 0.02
PREFERENCES = 101
SEEDS = (0, 1, 2)
AT_AN_END = 0.1
"""A point this close to an end of the front counts as that end."""


def front_of(problem: str, method: str, scalarisation: str, seed: int) -> lp.Front:
    """Trained, at many preferences: what is missing then is missing from the family itself."""
    settings = {"scalarisation": scalarisation, "smoothing": SMOOTHING, "scheduler": "cosine"}
    spec = Spec.make(problem, method, seed, settings)
    model, splits = spec.build(), spec.load(Path())
    placement = Placement(Engine().start([]))
    fit_spec(spec, model, splits, placement=placement, progress=False)
    test = batches(splits.test, 1)
    return lp.evaluate(model, spec.tasks(), test, lp.grid(2, PREFERENCES), label=scalarisation)


def best_volume(problem: str) -> float:
    known = KNOWN[problem]
    points = known.front(torch.linspace(0, 1, 2001, dtype=torch.float64))
    return float(lp.hypervolume(points, known.worst, maximise=False))


def off_the_ends(front: lp.Front, problem: str) -> float:
    """The part of the preferences whose point is near neither end of the front."""
    ends = KNOWN[problem].front(torch.tensor([0.0, 1.0], dtype=torch.float64))
    return (torch.cdist(front.scores, ends).amin(1) > AT_AN_END).double().mean().item()


def row(problem: str, method: str, scalarisation: str, fronts: list[lp.Front]) -> dict[str, Any]:
    known = KNOWN[problem]
    return {
        "problem": problem,
        "method": method,
        "scalarisation": scalarisation,
        "volume": [float(front.hypervolume()) / best_volume(problem) for front in fronts],
        "off the ends": [off_the_ends(front, problem) for front in fronts],
        "distance": [distance_to_front(f.scores, known).max().item() for f in fronts],
    }


def span(values: list[float]) -> str:
    return f"{statistics.fmean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def draw(fronts: dict[tuple[str, str, str], list[lp.Front]], path: Path) -> None:
    figure = Figure(figsize=(4.0 * len(PROBLEMS), 4.0 * len(METHODS)), layout="constrained")
    for method, line in zip(METHODS, figure.subplots(len(METHODS), len(PROBLEMS)), strict=True):
        for (problem, title), axes in zip(PROBLEMS.items(), line, strict=True):
            known = KNOWN[problem].front(torch.linspace(0, 1, 501, dtype=torch.float64))
            axes.plot(*known.T, color="0.75", lw=4, label="the front", zorder=1)
            for place, name in enumerate(SCALARISATIONS):
                # The seed in the middle, so that none is picked by hand.
                found = sorted(fronts[problem, method, name], key=lambda f: f.hypervolume())[1]
                style = {"color": COLOURS[place], "marker": "osD"[place], "ms": 7 - 1.5 * place}
                axes.plot(*found.scores[::5].T, lw=0, mfc="none", label=name, **style)
            axes.set(xlabel="$f_1$", ylabel="$f_2$", xlim=(-0.05, 1.1), ylim=(-0.05, 1.1))
            axes.set_title(f"{method}: {title}", fontsize=11)
            axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8, loc="lower left")
    save_figure(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    fronts = {
        (problem, method, name): [front_of(problem, method, name, seed) for seed in SEEDS]
        for problem in PROBLEMS
        for method in METHODS
        for name in SCALARISATIONS
    }
    rows = [row(*key, found) for key, found in fronts.items()]
    lines = [
        f"A point of ten numbers, mean (and range) of seeds 0, 1, 2, fronts at {PREFERENCES} "
        "preferences. Volume: the part of the best possible hypervolume. Off the ends: the part of "
        f"the preferences whose point is farther than {AT_AN_END} from both ends of the front. "
        "Distance: the largest one from the front. Presets but for cosine decay and a smoothing of "
        f"{SMOOTHING}. Made by `python benchmarks/scalarisations.py --out {options.out}`.",
        "",
        "| front | method | scalarisation | volume | off the ends | distance |",
        "|---|---|---|---:|---:|---:|",
    ]
    for one in rows:
        lines.append(
            f"| {PROBLEMS[one['problem']]} | {one['method']} | {one['scalarisation']} "
            f"| {span(one['volume'])} | {span(one['off the ends'])} | {max(one['distance']):.1g} |"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "scalarisations.md").write_text("\n".join(lines) + "\n")
    (options.out / "scalarisations.json").write_text(
        table_json(shlex.join(["python", *sys.argv]), rows)
    )
    draw(fronts, options.out / "scalarisations.png")


if __name__ == "__main__":
    main()
