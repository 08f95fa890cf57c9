"""The outputs of one network at several preferences, as one structure."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lorpman._torch import tree_map


class PerPreference(list[Any]):
    """What networks gave beside tensors, one value per preference.

    A class of its own, and so no part of the structure of outputs, as plain lists are.
    """


def stack_outputs(outputs: Sequence[Any]) -> Any:
    """Outputs of b forward passes as one structure, each tensor led by b.

    Args:
        outputs: b structures of one shape: values in lists, tuples, dicts and whatever else torch
            knows as a container, such as the outputs of transformers.

    Returns:
        The same structure. A value that is no tensor, such as a cache, becomes a list of b.
    """

    def stack(*values: Any) -> Any:
        return torch.stack(values) if isinstance(values[0], Tensor) else PerPreference(values)

    return tree_map(stack, *outputs)


def select_output(outputs: Any, index: int) -> Any:
    """The output of one pass from what :func:`stack_outputs` made.

    Args:
        outputs: The stacked outputs, each tensor led by b.
        index: Which of the b passes.
    """
    return tree_map(lambda value: value[index], outputs)
