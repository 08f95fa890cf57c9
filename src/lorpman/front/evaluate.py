"""The second verb: the scores of a manifold on a set of preferences."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lorpman._torch import tree_map_only
from lorpman.errors import UsageError
from lorpman.front.front import Front
from lorpman.manifold.base import Manifold
from lorpman.manifold.network_call import call_network
from lorpman.preference import as_preference
from lorpman.task import Task, check_repeatable, check_tasks, per_task, unpack

# How many bytes of networks are in memory at once: one pass over the data for many networks is
# quicker than one pass for each.
_NETWORKS_IN_MEMORY = 512 * 2**20


@torch.no_grad()
def evaluate(
    model: Manifold,
    tasks: Sequence[Task],
    loader: Iterable[Any],
    alphas: Tensor | None = None,
    *,
    label: str = "",
) -> Front:
    """Score a manifold on all data at a set of preferences.

    Each preference is merged into a plain network once, not once per batch.

    Args:
        model: The manifold; it is put into evaluation mode meanwhile.
        tasks: Its m tasks.
        loader: Yields batches ``(x, y)``, and can be iterated more than once.
        alphas: The preferences, ``[n, m]`` or ``[m]``; by default the manifold's own, which is
            ``lp.grid(m)`` for a continuous front.
        label: The front's name in plots.

    Returns:
        The front, with scores and mean losses.

    Raises:
        UsageError: If tasks or loader do not fit, or the loader is empty.
        ValueError: If ``alphas`` are no preferences.
    """
    check_tasks(tasks, model.num_tasks)
    check_repeatable(loader, "the loader")
    chosen = model.preferences() if alphas is None else as_preference(alphas, model.num_tasks)
    chosen = chosen.detach().reshape(-1, model.num_tasks).cpu()
    was_training = model.training
    model.eval()
    try:
        size = sum(p.numel() * p.element_size() for p in model.solution(chosen[0]).parameters())
        rows = [
            row
            for part in chosen.split(max(1, _NETWORKS_IN_MEMORY // max(size, 1)))
            for row in scores_of([model.solution(alpha) for alpha in part], tasks, loader)
        ]
    finally:
        model.train(was_training)
    return Front(
        alphas=chosen,
        scores=torch.stack([scores for scores, _ in rows]),
        tasks=tuple(task.name for task in tasks),
        maximise=tuple(task.maximise for task in tasks),
        reference=tuple(float(task.reference) for task in tasks),
        losses=torch.stack([losses for _, losses in rows]),
        label=label,
    )


def scores_of(
    networks: list[nn.Module], tasks: Sequence[Task], loader: Iterable[Any]
) -> list[tuple[Tensor, Tensor]]:
    """Score plain networks over one pass of the data.

    Args:
        networks: Networks with one output per task, in evaluation mode.
        tasks: The m tasks.
        loader: Yields batches ``(x, y)``.

    Returns:
        For each network its scores and its mean losses, each ``[m]``.

    Raises:
        UsageError: If the loader is empty.
    """
    totals = [_Totals(tasks) for _ in networks]
    like = next(p for p in networks[0].parameters() if p.is_floating_point())
    empty = True
    for batch in loader:
        empty = False
        x, y = unpack(tree_map_only(Tensor, lambda value: value.to(like.device), batch))
        # A network in half precision takes no other floats; targets keep theirs, for the scores.
        if like.dtype in (torch.bfloat16, torch.float16):
            x = tree_map_only(Tensor, lambda v: v.to(like) if v.is_floating_point() else v, x)
        targets = per_task(y, tasks, "the batch's targets")
        for network, total in zip(networks, totals, strict=True):
            total.add(per_task(call_network(network, x), tasks, "the network's output"), targets)
    if empty:
        raise UsageError("the loader is empty: nothing to evaluate on")
    return [total.result() for total in totals]


class _Totals:
    """Sums over batches, from which scores and losses are right for uneven batches too."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self.metrics = [task.metric() for task in tasks]
        self.statistics: list[Tensor | float] = [0.0] * len(tasks)
        self.losses = [0.0] * len(tasks)
        self.counts = [0] * len(tasks)

    def add(self, outputs: list[Tensor], targets: list[Tensor]) -> None:
        for i, (output, target) in enumerate(zip(outputs, targets, strict=True)):
            output, target, count = self.tasks[i].labelled(output, target)
            if count == 0:
                continue
            # On the CPU, since not every device has doubles.
            statistics = self.metrics[i].statistics(output, target).cpu().double()
            self.statistics[i] = self.statistics[i] + statistics
            # Losses are means over a batch; times its size, the last and shorter one weighs less.
            self.losses[i] += float(self.tasks[i].loss(output, target)) * count
            self.counts[i] += count

    def result(self) -> tuple[Tensor, Tensor]:
        for task, count in zip(self.tasks, self.counts, strict=True):
            if count == 0:
                raise UsageError(f"no sample has a label for task '{task.name}': it has no score")
        values = [
            metric.value(torch.as_tensor(total)).cpu().double()
            for metric, total in zip(self.metrics, self.statistics, strict=True)
        ]
        losses = [total / count for total, count in zip(self.losses, self.counts, strict=True)]
        return torch.stack(values), torch.tensor(losses, dtype=torch.float64)
