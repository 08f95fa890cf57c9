"""What is NaN or infinite never passes as a result: one place finds it and says where it is.

Minus infinity is allowed where people write masks with it, in buffers and outputs: it says that
something is left out, and a loss that it reaches shows it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lorpman._torch import tree_leaves
from lorpman.errors import NotFinite
from lorpman.task import Task

_TRAINED = "train it again with a lower learning rate, or go back to an earlier checkpoint"


def at_preference(alpha: Tensor | Sequence[float] | None) -> str:
    """The words for a preference ``[m]`` in an error; for None, those for all of them.

    Args:
        alpha: The preference; None for any.

    >>> at_preference(torch.tensor([0.25, 0.75])), at_preference(None)
    ('at preference (0.25, 0.75)', 'at any preference')
    """
    if alpha is None:
        return "at any preference"
    weights = alpha.tolist() if isinstance(alpha, Tensor) else alpha
    return f"at preference ({', '.join(f'{weight:.3g}' for weight in weights)})"


def describe_bad_weight(module: nn.Module) -> str | None:
    """The first parameter or buffer that is not finite, in words; None if all of them are.

    Args:
        module: A network or a manifold, whose weights are read once.
    """
    parameters = {f"parameter '{name}'": p for name, p in module.named_parameters()}
    buffers = {f"buffer '{name}'": b for name, b in module.named_buffers()}
    return describe_bad(parameters) or describe_bad(buffers, masked=True)


def describe_bad(named: Mapping[str, Any], masked: bool = False) -> str | None:
    """The first of some tensors that is not finite, in words; None if all of them are.

    Args:
        named: Tensors by what they are called; anything else is finite.
        masked: Whether they may hold minus infinity.
    """
    if all_finite(list(named.values())):
        return None
    for name, value in named.items():
        if not _holds_floats(value):
            continue
        wide = _wide(value.detach())
        bad = ~wide.isfinite()
        # Complex numbers are no masks, and have no order to compare them by.
        if masked and not wide.is_complex():
            bad &= wide != -math.inf
        if bad.any():
            return f"{name} holds {wide[bad][0].item()}"
    return None


def all_finite(values: Sequence[Any]) -> bool:
    """Whether every number in tensors is finite; may be False where sums of them are too large.

    Args:
        values: Anything; what is not a tensor of floats is finite.
    """
    floats = [value.detach() for value in values if _holds_floats(value)]
    if not floats:
        return True
    # A sum is finite only if its parts are: one pass without a copy, and one wait for the device.
    device = floats[0].device
    sums = [_wide(value).sum().abs().float().to(device) for value in floats]
    return bool(torch.stack(sums).sum().isfinite())


def check_weights(network: nn.Module, alpha: Tensor | None) -> None:
    """Refuse a network whose weights are not finite.

    Args:
        network: A plain network, or a manifold.
        alpha: Its preference ``[m]``; None for a manifold, which has all of them.

    Raises:
        NotFinite: If one is not; the message names the preference and the parameter.
    """
    bad = describe_bad_weight(network)
    if bad is not None:
        raise NotFinite(f"the network {at_preference(alpha)} is not finite: {bad}; {_TRAINED}")


def check_outputs(outputs: Mapping[str, Any], alpha: Tensor | None, batch: Any = None) -> None:
    """Refuse outputs that hold NaN or infinity.

    Args:
        outputs: By what an error calls them: tensors, or structures of them.
        alpha: The preference ``[m]`` of the network that gave them.
        batch: What the network was run on, which may be the reason.

    Raises:
        NotFinite: If one does; the message names output and preference, and the data if that is not
            finite itself.
    """
    if all_finite([leaf for values in outputs.values() for leaf in tree_leaves(values)]):
        return
    for name, values in outputs.items():
        for leaf in tree_leaves(values):
            bad = describe_bad({name: leaf}, masked=True)
            if bad is not None:
                raise _not_finite(bad, alpha, batch)


def check_number(
    what: str, value: float, task: Task, alpha: Tensor | None, batch: Any = None
) -> None:
    """Refuse a loss or a score that is not finite.

    Args:
        what: Which of both: "loss" or "score".
        value: The number.
        task: Whose it is.
        alpha: The preference ``[m]`` that it belongs to.
        batch: What it was taken on, which may be the reason.

    Raises:
        NotFinite: If it is not; the message names task and preference, and the data if that is not
            finite itself.
    """
    if not math.isfinite(value):
        raise _not_finite(f"the {what} of task '{task.name}' is {value}", alpha, batch)


def _not_finite(found: str, alpha: Tensor | None, batch: Any) -> NotFinite:
    """The error, which blames the data where that holds NaN or infinity."""
    given = [leaf for leaf in tree_leaves(batch) if _holds_floats(leaf)]
    if all(leaf.isfinite().all() for leaf in given):
        return NotFinite(f"{found} {at_preference(alpha)}; {_TRAINED}")
    why = "the data it was computed from holds NaN or infinity; mend the data"
    return NotFinite(f"{found} {at_preference(alpha)}: {why}")


def _holds_floats(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _wide(value: Tensor) -> Tensor:
    """In a type that can be added up: floats of one byte cannot."""
    return value.float() if value.element_size() == 1 else value
