"""What two choices are worth in a VGG-16 step: the layout of images, and the way to merge.

    python benchmarks/choices.py --out results/bench/choices.md

Processor time on one thread, medians of interleaved rounds.
"""

import argparse
import statistics
from dataclasses import replace
from pathlib import Path

import torch

from lorpman.lab.bench.steps import FitStep, fit_step
from lorpman.lab.bench.timing import Conditions, Times, interleave
from lorpman.lab.bench.workload import vgg
from lorpman.manifold.low_rank import LowRank
from lorpman.manifold.merge import Way

WIDTHS = (16, 32, 64)
WAYS: tuple[Way, ...] = ("product", "pairs", "simple")


def with_way(way: Way) -> FitStep:
    """A step at full width that merges in one way."""
    step = fit_step(vgg())
    assert isinstance(step.run.model, LowRank)
    step.run.model.merge = way
    return step


def cells(times: Times) -> str:
    """The milliseconds of every contender, as cells of a table."""
    return " | ".join(f"{1e3 * statistics.median(rounds):.0f}" for rounds in times.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    conditions = Conditions(threads=1, quick=True)
    lines = [
        "A LORPMAN step of VGG-16 (m=20, batch 64, b=2, r=8): processor time in ms on one thread. "
        f"Made by `python benchmarks/choices.py --out {options.out}`.",
        "",
        "| width | channels last | channels first |",
        "|---|---:|---:|",
    ]
    for width in WIDTHS:
        layouts = {str(last): replace(vgg(width), channels_last=last) for last in (True, False)}
        steps = {name: fit_step(workload) for name, workload in layouts.items()}
        lines.append(f"| {width} | {cells(interleave(steps, conditions))} |")
    ways = interleave({way: with_way(way) for way in WAYS}, conditions)
    lines += ["", f"| merge | {' | '.join(WAYS)} |", "|---|" + "---:|" * len(WAYS)]
    lines.append(f"| width 64 | {cells(ways)} |")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
