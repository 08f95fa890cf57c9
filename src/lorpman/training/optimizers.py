"""Optimisers and schedules: made, checked, and kept in step with parameters that stop or shrink."""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from lorpman.errors import UsageError, unknown
from lorpman.manifold.base import Cut, Manifold
from lorpman.rules.base import Rule

MakeOptimizer = Callable[[Iterable[nn.Parameter]], Optimizer]
MakeScheduler = Callable[[Optimizer], LRScheduler]
Interval = Literal["epoch", "step"]


def make_optimizer(
    optimizer: Optimizer | MakeOptimizer | None, model: Manifold, rule: Rule
) -> Optimizer:
    """The optimiser of everything that is trained: the model's and the rule's parameters.

    Args:
        optimizer: An instance, a function that makes one from parameters, or None for Adam
            with a rate of 1e-3.
        model: The manifold that is trained.
        rule: Its own parameters, if it has any, are added to the optimiser.

    Raises:
        UsageError: If an instance lacks parameters of the model, or needs a closure.
    """
    trained = [p for p in (*model.parameters(), *rule.parameters()) if p.requires_grad]
    if optimizer is None:
        # Fused: deltas are many small tensors, each of which would take a dozen operations.
        return torch.optim.Adam(trained, lr=1e-3, fused=True)
    if not isinstance(optimizer, Optimizer):
        optimizer = optimizer(trained)
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UsageError(
            "LBFGS evaluates the loss several times in a step, but the preferences of a step are "
            "drawn once; use an optimiser that takes one gradient per step, such as Adam or SGD"
        )
    # By identity: tensors compare by their values.
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    missing = [n for n, p in model.named_parameters() if p.requires_grad and id(p) not in held]
    if missing:
        raise UsageError(
            f"the optimizer lacks {len(missing)} of the model's parameters, among them "
            f"{missing[0]}; the manifold works on a copy of your network, so make the optimizer "
            "from model.parameters() (requires_grad_(False) stops what should not be trained)"
        )
    # Whoever made the optimiser could not know of them: a rule makes them when it is prepared.
    extra = [p for p in rule.parameters() if p.requires_grad and id(p) not in held]
    if extra:
        optimizer.add_param_group({"params": extra})
    return optimizer


def make_scheduler(
    scheduler: LRScheduler | MakeScheduler | None, optimizer: Optimizer, interval: Interval
) -> LRScheduler | None:
    """The schedule of the learning rate, checked to move ``optimizer``.

    Args:
        scheduler: An instance, a function that makes one from the optimiser, or None.
        optimizer: The optimiser that trains.
        interval: Whether the schedule moves after every epoch or after every step.

    Raises:
        UsageError: If it moves another optimiser, or cannot move at this interval.
    """
    if interval not in get_args(Interval):
        raise unknown("scheduler_interval", interval, get_args(Interval))
    if scheduler is not None and not isinstance(scheduler, LRScheduler):
        scheduler = scheduler(optimizer)
    if scheduler is not None and scheduler.optimizer is not optimizer:
        raise UsageError(
            "the scheduler moves another optimizer than the one that trains; pass both, or a "
            "function that makes the scheduler from the optimizer"
        )
    if interval == "step" and isinstance(scheduler, ReduceLROnPlateau):
        raise UsageError(
            "ReduceLROnPlateau looks at the loss of an epoch; use scheduler_interval='epoch'"
        )
    return scheduler


def drop_frozen(optimizer: Optimizer) -> None:
    """Take parameters that are no longer trained out of the optimiser, with their state.

    Setting ``requires_grad`` alone would not stop them: momentum and weight decay move a
    parameter without a gradient.

    Args:
        optimizer: The optimiser, which is changed.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if not parameter.requires_grad:
                optimizer.state.pop(parameter, None)
        group["params"] = [p for p in group["params"] if p.requires_grad]


def cut_state(optimizer: Optimizer, cuts: Mapping[nn.Parameter, Cut]) -> None:
    """Cut what the optimiser knows of parameters that have become smaller.

    Args:
        optimizer: The optimiser, which is changed.
        cuts: How each of them was cut.
    """
    for parameter, cut in cuts.items():
        state = optimizer.state.get(parameter, {})
        for key, value in state.items():
            # Momentum and the like have the parameter's old shape; step counts have none.
            if isinstance(value, Tensor) and value.shape == cut.before:
                state[key] = cut.cut(value)
        tensors = [value for value in state.values() if isinstance(value, Tensor)]
        if any(value.ndim and value.shape != parameter.shape for value in tensors):
            # Some optimisers keep sums over rows or columns, which cannot be cut: start anew.
            optimizer.state.pop(parameter)
