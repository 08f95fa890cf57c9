"""The second verb: the scores of a manifold on a set of preferences."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lorpman._torch import tree_map_only
from lorpman.errors import UsageError
from lorpman.front.finiteness import check_number, check_outputs, check_weights
from lorpman.front.front import Front
from lorpman.manifold.base import Manifold, check_manifold
from lorpman.manifold.network_call import call_network
from lorpman.manifold.network_parameters import check_values
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

    Each preference is merged into a plain network once, not once per batch; a network that stays
    as it came (``frozen=True``) is not copied.

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
        NotFinite: If weights, outputs, losses or scores are NaN or infinite; nothing is scored
            then. It is a UsageError.
        ValueError: If ``alphas`` are no preferences.
    """
    check_manifold(model)
    check_tasks(tasks, model.num_tasks)
    check_values(model)
    check_repeatable(loader, "the loader")
    chosen = model.preferences() if alphas is None else as_preference(alphas, model.num_tasks)
    chosen = chosen.detach().reshape(-1, model.num_tasks).cpu()
    was_training = model.training
    # Before the solutions are made: they come in the mode of the manifold.
    model.eval()
    try:
        lender = model if model.lends_weights else None
        rows = [
            row
            for part in chosen.split(_at_once(model, chosen[0]))
            for row in scores_of(
                [model.network_to_run(a) for a in part], tasks, loader, part, lender
            )
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


def _at_once(model: Manifold, alpha: Tensor) -> int:
    """How many networks are scored in one pass over the data."""
    if model.lends_weights:
        return len(model.preferences())
    size = sum(p.numel() * p.element_size() for p in model.solution(alpha).parameters())
    return max(1, _NETWORKS_IN_MEMORY // max(size, 1))


def scores_of(
    networks: list[nn.Module],
    tasks: Sequence[Task],
    loader: Iterable[Any],
    alphas: Tensor,
    lender: nn.Module | None = None,
) -> list[tuple[Tensor, Tensor]]:
    """Score plain networks over one pass of the data.

    Args:
        networks: Networks with one output per task, in evaluation mode.
        tasks: The m tasks.
        loader: Yields batches ``(x, y)``.
        alphas: The preferences of the networks, ``[n, m]``, for errors.
        lender: Whose weights the networks use, where they have none of their own.

    Returns:
        For each network its scores and its mean losses, each ``[m]``.

    Raises:
        UsageError: If the loader is empty.
        NotFinite: If weights, outputs, losses or scores are NaN or infinite.
    """
    if lender is not None:
        # Not of each network, which would have to be merged for that.
        check_weights(lender, None)
    else:
        for network, alpha in zip(networks, alphas, strict=True):
            check_weights(network, alpha)
    totals = [_Totals(tasks, alpha) for alpha in alphas]
    holder = networks[0] if lender is None else lender
    device = next(holder.parameters()).device
    empty = True
    for batch in loader:
        empty = False
        x, y = unpack(tree_map_only(Tensor, lambda value: _moved(value, device), batch))
        x = as_input(x, holder)  # targets keep their type, for the scores
        targets = per_task(y, tasks, "the batch's targets")
        for network, total in zip(networks, totals, strict=True):
            outputs = per_task(call_network(network, x), tasks, "the network's output")
            total.add(outputs, targets, (x, y))
    if empty:
        raise UsageError("the loader is empty: nothing to evaluate on")
    return [total.result() for total in totals]


def _moved(value: Tensor, device: torch.device) -> Tensor:
    """A tensor of a batch on the network's device."""
    if value.is_meta:
        raise UsageError("the data holds a tensor on the meta device, which has no values")
    return value.to(device)


def as_input(x: Any, network: nn.Module) -> Any:
    """``x`` as a network takes it: one in half precision takes no other floats.

    Args:
        x: What the network is to be run on, on its device.
        network: The network, or a manifold of such.
    """
    like = next(p for p in network.parameters() if p.is_floating_point())
    if like.dtype not in (torch.bfloat16, torch.float16):
        return x
    return tree_map_only(Tensor, lambda v: v.to(like) if v.is_floating_point() else v, x)


class _Totals:
    """Sums over batches, from which scores and losses are right for uneven batches too."""

    def __init__(self, tasks: Sequence[Task], alpha: Tensor) -> None:
        self.tasks = tasks
        self.alpha = alpha
        self.metrics = [task.metric() for task in tasks]
        self.statistics: list[Tensor | float] = [0.0] * len(tasks)
        self.losses = [0.0] * len(tasks)
        # For each task by itself, since a sample may lack the labels of some.
        self.counts = [0] * len(tasks)

    def add(self, outputs: list[Tensor], targets: list[Tensor], batch: Any) -> None:
        named = {
            f"the output of task '{t.name}'": o for t, o in zip(self.tasks, outputs, strict=True)
        }
        check_outputs(named, self.alpha, batch)
        for i, (output, target) in enumerate(zip(outputs, targets, strict=True)):
            output, target, count = self.tasks[i].labelled(output, target)
            if count == 0:
                continue
            # On the CPU, since not every device has doubles.
            statistics = self.metrics[i].statistics(output, target).cpu().double()
            self.statistics[i] = self.statistics[i] + statistics
            loss = float(self.tasks[i].loss(output, target))
            check_number("loss", loss, self.tasks[i], self.alpha, batch)
            # Losses are means over a batch; times its size, the last and shorter one weighs less.
            self.losses[i] += loss * count
            self.counts[i] += count

    def result(self) -> tuple[Tensor, Tensor]:
        for task, count in zip(self.tasks, self.counts, strict=True):
            if count == 0:
                raise UsageError(f"no sample has a label for task '{task.name}': it has no score")
        values = [
            metric.value(torch.as_tensor(total)).cpu().double()
            for metric, total in zip(self.metrics, self.statistics, strict=True)
        ]
        for task, value in zip(self.tasks, values, strict=True):
            check_number("score", float(value), task, self.alpha)
        losses = [total / count for total, count in zip(self.losses, self.counts, strict=True)]
        return torch.stack(values), torch.tensor(losses, dtype=torch.float64)
