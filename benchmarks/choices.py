"""What choices are worth in a LORPMAN step: the layout of images, and the way to merge.

    python benchmarks/choices.py --out results/bench/choices.md

Processor time on one thread, medians of interleaved rounds.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from lorpman.lab.bench.steps import FitStep, fit_step
from lorpman.lab.bench.timing import Conditions, Times, interleave
from lorpman.lab.bench.workload import Workload, census, lenet, vgg
from lorpman.manifold.low_rank import LowRank
from lorpman.manifold.merge import Way

WIDTHS = (16, 32, 64)
WAYS: tuple[Way, ...] = ("product", "pairs", "simple")
SMALL: dict[str, Callable[[], Workload]] = {"MultiMNIST LeNet": lenet, "Census MLP": census}


def with_way(workload: Workload, way: Way) -> FitStep:
    """A step that merges in one way."""
    step = fit_step(workload)
    assert isinstance(step.run.model, LowRank)
    step.run.model.merge = way
    return step


def cells(times: Times, digits: int = 0) -> str:
    """The milliseconds of every contender, as cells of a table."""
    medians = [1e3 * statistics.median(rounds) for rounds in times.values()]
    return " | ".join(f"{milliseconds:.{digits}f}" for milliseconds in medians)


def layouts() -> list[str]:
    """VGG-16 with both layouts of images, at several widths."""
    lines = ["| width | channels last | channels first |", "|---|---:|---:|"]
    for width in WIDTHS:
        workloads = {str(last): replace(vgg(width), channels_last=last) for last in (True, False)}
        steps = {name: fit_step(workload) for name, workload in workloads.items()}
        lines.append(f"| {width} | {cells(interleave(steps, Conditions(1, quick=True)))} |")
    return lines


def ways_of_vgg() -> list[str]:
    """VGG-16 at full width with every way to merge."""
    ways = {way: with_way(vgg(), way) for way in WAYS}
    head = [f"| merge | {' | '.join(WAYS)} |", "|---|" + "---:|" * len(WAYS)]
    return [*head, f"| width 64 | {cells(interleave(ways, Conditions(1, quick=True)))} |"]


def ways_of_small_networks() -> list[str]:
    """The networks of which compiled steps are measured, with every way to merge.

    Only the automatic way computes the layer that reads the data for all preferences at once.
    """
    ways: tuple[Way, ...] = ("auto", *WAYS)
    lines = [f"| merge | {' | '.join(ways)} |", "|---|" + "---:|" * len(ways)]
    for name, workload in SMALL.items():
        steps = {way: with_way(workload(), way) for way in ways}
        lines.append(f"| {name} | {cells(interleave(steps, Conditions(1)), digits=2)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        "A LORPMAN step of VGG-16 (m=20, batch 64, b=2, r=8): processor time in ms on one thread. "
        f"Made by `python benchmarks/choices.py --out {options.out}`.",
        "",
        *layouts(),
        "",
        *ways_of_vgg(),
        "",
        "Steps of smaller networks, with their presets:",
        "",
        *ways_of_small_networks(),
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
