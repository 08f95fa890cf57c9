"""The outputs of one network at several preferences, as one structure."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lorpman._torch import tree_map
from lorpman.errors import UsageError


def stack_outputs(outputs: Sequence[Any]) -> Any:
    """Outputs of b forward passes as one structure, each tensor led by b.

    Args:
        outputs: b structures of one shape: tensors in lists, tuples or dicts. Plain values, such
            as None, stay as they are in the first one.

    Raises:
        UsageError: if they hold something that cannot be split by preference.
    """

    def stack(*values: Any) -> Any:
        return torch.stack(values) if isinstance(values[0], Tensor) else _plain(values[0])

    return tree_map(stack, *outputs)


def _plain(value: Any) -> Any:
    """``value``, if it is nothing in which a tensor could hide from being split."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return value
    raise UsageError(
        f"the network's output holds a {type(value).__name__}, which cannot be split by "
        "preference; return tensors in lists, tuples or dicts"
    )


def select_output(outputs: Any, index: int) -> Any:
    """The output of one pass from what :func:`stack_outputs` made.

    Args:
        outputs: The stacked outputs, each tensor led by b.
        index: Which of the b passes.
    """
    return tree_map(lambda v: v[index] if isinstance(v, Tensor) else _plain(v), outputs)
