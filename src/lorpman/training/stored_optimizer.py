"""The stored state of an optimiser and a schedule: loaded only if a step can be taken with it.

Torch looks at neither shapes nor keys when it loads such a state. A wrong one would fail in the
middle of the next step, or, with a fused optimiser, read memory that is not its own.
"""

import copy
import math
import warnings
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from lorpman.errors import UsageError, shown


def load_optimizer(optimizer: Optimizer, stored: Mapping[str, Any]) -> None:
    """Load the state of an optimiser.

    Args:
        optimizer: One like that of the interrupted training.
        stored: What its ``state_dict()`` gave.

    Raises:
        UsageError: If a step could not be taken with it.
    """
    numbers = [number for group in stored["param_groups"] for number in group["params"]]
    if len(set(numbers)) < len(numbers) or not stored["state"].keys() <= set(numbers):
        raise UsageError("its optimiser holds parameters that are none of its own")
    before, settings = optimizer.state, [dict(group) for group in optimizer.param_groups]
    optimizer.load_state_dict(dict(stored))
    # A copy, which takes the steps that are tried.
    trial = copy.copy(optimizer)
    for group, old in zip(optimizer.param_groups, settings, strict=True):
        for parameter in group["params"]:
            # One that had no gradient yet has no state either.
            if state := optimizer.state.get(parameter):
                first = before.get(parameter, {})
                _check_state(state, _state_after_a_step(trial, parameter, group, old, first))


def _state_after_a_step(
    trial: Optimizer,
    parameter: nn.Parameter,
    group: dict[str, Any],
    old: dict[str, Any],
    first: dict[str, Any],
) -> dict[str, Any]:
    """What an optimiser keeps of a parameter; nothing for one that cannot step on it alone.

    Args:
        trial: The optimiser, to be changed.
        parameter: The parameter, which is not changed.
        group: Its settings as they were stored.
        old: Its settings before they were loaded.
        first: Its state before the first step; some, such as Adagrad, have one.
    """
    try:
        return _try_step(trial, parameter, group, first)
    except Exception as error:
        try:
            _try_step(trial, parameter, old, first)
        except Exception:  # whatever an optimiser of the user's own needs
            return {}
        raise UsageError(f"its optimiser cannot step: {shown(error)}") from None


def _try_step(
    trial: Optimizer, parameter: nn.Parameter, group: dict[str, Any], first: dict[str, Any]
) -> dict[str, Any]:
    """The state of a copy of the parameter after one step."""
    copied = nn.Parameter(parameter.detach().clone())
    copied.grad = torch.zeros_like(copied)
    trial.param_groups = [{**group, "params": [copied]}]
    trial.state = defaultdict(dict, {copied: copy.deepcopy(first)} if first else {})
    # The method of the class: a schedule puts its own in front of the instance's.
    type(trial).step(trial)
    return dict(trial.state[copied])


def _check_state(state: dict[str, Any], expected: dict[str, Any]) -> None:
    """Refuse the state of a parameter that lacks something, or has it in another shape."""
    for key, wanted in expected.items():
        if key not in state:
            raise UsageError(f"its optimiser lacks '{key}' of a parameter")
        if _form(state[key]) != _form(wanted):
            raise UsageError(
                f"its optimiser has '{key}' as {_form(state[key])}, expected {_form(wanted)}"
            )
        # It divides by how many there were.
        if key == "step" and not 0 <= float(state[key]) < math.inf:
            raise UsageError(f"its optimiser has done {float(state[key]):g} steps")


def _form(value: Any) -> str:
    """What kind of value it is, in a few words."""
    if isinstance(value, Tensor):
        # Torch has cast what it loaded: which floats they are may differ.
        kind = "floats" if value.is_floating_point() else str(value.dtype)
        return f"{kind} {list(value.shape)}"
    return type(value).__name__


def load_scheduler(scheduler: LRScheduler, stored: Mapping[str, Any]) -> None:
    """Load the state of a schedule, and try whether it can move.

    Args:
        scheduler: One like that of the interrupted training; its optimiser is loaded already.
        stored: What its ``state_dict()`` gave.

    Raises:
        UsageError: If it could not move.
    """
    groups = scheduler.optimizer.param_groups
    settings = [(dict(group), float(group["lr"])) for group in groups]
    scheduler.load_state_dict(copy.deepcopy(dict(stored)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _move(scheduler)
        rates = [float(group["lr"]) for group in groups]
    except ValueError:
        # A schedule of so many steps may be at its end, where training is too.
        rates = []
    except Exception as error:
        raise UsageError(f"its schedule cannot move: {shown(error)}") from None
    if not all(map(math.isfinite, rates)):
        raise UsageError(f"its schedule leads to the learning rates {rates}")
    for group, (values, rate) in zip(groups, settings, strict=True):
        group.update(values)
        if isinstance(group["lr"], Tensor):  # which was changed in place
            group["lr"].fill_(rate)
    scheduler.load_state_dict(dict(stored))


def _move(scheduler: LRScheduler) -> None:
    if isinstance(scheduler, ReduceLROnPlateau):
        scheduler.step(math.nan)  # a loss that is not better, so that everything is used
    else:
        scheduler.step()
