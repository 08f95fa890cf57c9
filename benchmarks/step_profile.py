"""Where the time of one LORPMAN step goes, beside b plain steps, and how much work there is.

    python benchmarks/step_profile.py census vgg --out results/bench/step-profile.md

Processor time on one thread, medians of interleaved rounds. The work is counted in
multiplications: those of the plain passes by PyTorch's counter, those of the merge by formula. What
the merge would take at least is its work at the speed of one large matrix product.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from lorpman.lab.bench.steps import fit_step, mean_loss
from lorpman.lab.bench.workload import Workload, census, vgg
from lorpman.manifold.low_rank import LowRank

WORKLOADS: dict[str, Callable[[], Workload]] = {"census": census, "vgg": vgg}
ROUNDS = {"census": 200, "vgg": 5}


class Clock:
    """Seconds spent in parts, by round."""

    def __init__(self) -> None:
        self.rounds: dict[str, list[float]] = defaultdict(list)
        self._now: dict[str, float] = defaultdict(float)

    def watch(self, owner: Any, name: str, label: str) -> None:
        """Count the time of a method from now on."""
        inner = getattr(owner, name)

        @wraps(inner)
        def timed(*args: Any, **options: Any) -> Any:
            began = time.process_time()
            try:
                return inner(*args, **options)
            finally:
                self._now[label] += time.process_time() - began

        setattr(owner, name, timed)

    def add(self, label: str, began: float) -> float:
        now = time.process_time()
        self._now[label] += now - began
        return now

    def end_round(self) -> None:
        for label, seconds in self._now.items():
            self.rounds[label].append(seconds)
        self._now.clear()

    def median(self, label: str) -> float:
        """In milliseconds."""
        return 1e3 * statistics.median(self.rounds[label])


def parts(workload: Workload, rounds: int) -> tuple[Clock, Clock]:
    """The clocks of plain steps and of LORPMAN's."""
    ours, plain = Clock(), Clock()
    step = fit_step(workload)
    run = step.run
    step()
    for owner, name, label in (
        (run.model, "weights_on", "merge"),
        (run, "forward", "forward"),
        (run.rule, "forward", "objective"),
        (run.fabric, "backward", "backward"),
        (run.optimizer, "step", "optimiser"),
        (run, "step", "all"),
    ):
        ours.watch(owner, name, label)
    network = workload.network().train()
    batch = workload.fit_batch()
    optimizer = workload.spec.training.make_optimizer()(network.parameters())
    for _ in range(rounds):
        step()
        ours.end_round()
        began = time.process_time()
        for _ in range(workload.spec.training.window):
            optimizer.zero_grad()
            now = time.process_time()
            loss = mean_loss(network(batch[0]), batch, workload.tasks)
            now = plain.add("forward", now)
            loss.backward()
            now = plain.add("backward", now)
            optimizer.step()
            plain.add("optimiser", now)
        plain.add("all", began)
        plain.end_round()
    return plain, ours


def multiplications(workload: Workload) -> tuple[float, float]:
    """Of b plain passes forward and backward, and of the merge, in units of 10^9."""
    model, window = workload.manifold(), workload.spec.training.window
    assert isinstance(model, LowRank)
    with FlopCounterMode(display=False) as counter:
        batch = workload.fit_batch()
        mean_loss(workload.network()(batch[0]), batch, workload.tasks).backward()
    merge = sum(
        3 * window * delta.B.numel() * delta.A.shape[2]
        for delta in model.low_rank_deltas().values()
    )
    return window * counter.get_total_flops() / 2e9, merge / 1e9


def fastest(size: int = 1536, rounds: int = 9) -> float:
    """Billions of multiplications a second in a large matrix product."""
    left, right = torch.rand(size, size), torch.rand(size, size)
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        left @ right
        seconds.append(time.process_time() - began)
    return size**3 / 1e9 / statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="+", choices=list(WORKLOADS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [
        "One step of LORPMAN beside b plain ones with images laid out alike and a fused optimiser: "
        "processor time in ms on one thread. The merge is a part of the forward pass; its gradient "
        "is a part of the backward pass. Made by `python benchmarks/step_profile.py "
        f"{' '.join(options.workloads)} --out {options.out}`.",
    ]
    speed = fastest()
    for name in options.workloads:
        workload = WORKLOADS[name]()
        plain, ours = parts(workload, ROUNDS[name])
        passes, merge = multiplications(workload)
        lines += ["", f"**{name}**", "", "| part | plain | LORPMAN |", "|---|---:|---:|"]
        for label in ("merge", "forward", "objective", "backward", "optimiser", "all"):
            beside = f"{plain.median(label):.2f}" if label in plain.rounds else ""
            lines.append(f"| {label} | {beside} | {ours.median(label):.2f} |")
        lines += [
            "",
            f"The plain passes take {passes:.3g} billion multiplications, the merge and its "
            f"gradients {merge:.3g}, {merge / passes:.0%} of them. At the speed of a large matrix "
            f"product ({speed:.0f} billion a second) the latter take "
            f"{1e3 * merge / speed:.3g} ms, {1e5 * merge / speed / plain.median('all'):.0f}% of "
            "the plain steps.",
        ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
