"""A loop over preferences beside one batched call of vmap: why `LowRank` loops.

    python benchmarks/batched.py --out results/bench/batched.md

Forward and backward passes of LeNet at four preferences, batch 256, against four plain ones:
processor time on one thread, medians of interleaved rounds.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor
from torch.func import functional_call

from lorpman.lab.bench.timing import Conditions, interleave, ratio
from lorpman.lab.bench.workload import lenet
from lorpman.manifold.low_rank import LowRank
from lorpman.manifold.stacked_outputs import select_output
from lorpman.preference import dirichlet
from lorpman.task import task_losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    workload = lenet()
    model, plain = workload.manifold(), workload.network()
    assert isinstance(model, LowRank)
    alphas = dirichlet(2, 4, generator=torch.Generator().manual_seed(0))
    x, targets = workload.fit_batch()

    def losses(outputs: list[Tensor]) -> Tensor:
        rows = [
            task_losses(select_output(outputs, j), targets, workload.tasks)
            for j in range(len(alphas))
        ]
        return (alphas * torch.stack(rows)).sum()

    def loop() -> None:
        losses(model(x, alphas)).backward()

    def batched() -> None:
        theta = model.theta(alphas)
        losses(torch.vmap(lambda own: functional_call(model.network, own, (x,)))(theta)).backward()

    def four_plain() -> None:
        for alpha in alphas:
            (alpha * task_losses(plain(x), targets, workload.tasks)).sum().backward()

    times = interleave({"plain": four_plain, "loop": loop, "vmap": batched}, Conditions(1))
    lines = [
        "Forward and backward passes of LeNet at four preferences, batch 256, images "
        "channels-last, against four plain ones. Made by `python benchmarks/batched.py --out "
        f"{options.out}`.",
        "",
        "| way | against plain |",
        "|---|---:|",
        *(f"| {name} | {ratio(times, name, 'plain'):.2f} |" for name in ("loop", "vmap")),
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
