"""What a training step of each method costs, as a ratio to a plain step on the mean loss.

    python benchmarks/step_cost.py [--problem multidigits] [--rounds 40]

Processor time on one thread, which other work on the machine disturbs least. The methods take
turns, a step each; a ratio is the median of a method's times over that of the plain step.
Sets of networks have 5, and are also given per network.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lorpman.lab.datasets.splits import batches
from lorpman.lab.methods.discrete import DISCRETE
from lorpman.lab.methods.registry import METHODS
from lorpman.lab.methods.single import SINGLE
from lorpman.lab.problems.registry import get_problem
from lorpman.manifold.stacked_outputs import select_output
from lorpman.rules.base import Step
from lorpman.task import task_losses

OWN: dict[str, dict[str, Any]] = {row.name: {"members": 5} for row in DISCRETE}


def stepper(problem: str, method: str, size: int) -> tuple[Callable[[], None], int]:
    """A function that trains ``method`` for one step, and how many networks it moves."""
    row, chosen = get_problem(problem), METHODS[method]
    torch.manual_seed(0)
    own = chosen.settings(**OWN.get(method, {}))
    tasks = row.make_tasks(None)
    model = chosen.manifold(row.make_network(None), len(tasks), row.shared, own)
    rule = chosen.rule(own)
    rule.prepare(model)
    optimizer = torch.optim.Adam([*model.parameters(), *rule.parameters()], lr=1e-3)
    supply = cycle(list(batches(row.load(Path(), None).train, size)))
    draw = model.sampler(1.0)

    def losses_at(alphas: Tensor, batch: Any) -> Tensor:
        outputs = model(batch[0], alphas)
        rows = [select_output(outputs, j) for j in range(len(alphas))]
        return torch.stack([task_losses(output, batch[1], tasks) for output in rows])

    def step() -> None:
        optimizer.zero_grad()
        rule.backward(
            Step(
                alphas=draw(len(tasks), 1, None),
                model=model,
                backward=torch.Tensor.backward,
                losses_at=losses_at,
                batch=next(supply),
                another_batch=lambda: next(supply),
                epoch=0,
                epochs=1,
                optimizer=optimizer,
            )
        )
        optimizer.step()

    return step, len(model.preferences())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--problem", default="multidigits")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = [row.name for row in (*SINGLE, *DISCRETE)]
    steps = {name: stepper(options.problem, name, options.batch) for name in names}
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(options.rounds + 3):
        for name, (step, _) in steps.items():
            began = time.process_time()
            step()
            if turn >= 3:  # the first steps make buffers
                times[name].append(time.process_time() - began)
    plain = statistics.median(times["ls"])
    print(f"{options.problem}, batch {options.batch}, {options.rounds} rounds; plain step (ls)")
    print(f"takes {1e3 * plain:.1f} ms\n")
    print("| method | step / plain step | networks | per network |\n|---|---|---|---|")
    for name, (_, count) in steps.items():
        ratio = statistics.median(times[name]) / plain
        print(f"| {name} | {ratio:.2f} | {count} | {ratio / count:.2f} |")


if __name__ == "__main__":
    main()
