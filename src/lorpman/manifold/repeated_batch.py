"""One batch for all preferences: the samples once for each of them, and the outputs taken apart."""

from typing import Any

import torch
from torch import Tensor, nn

from lorpman._torch import BATCH_NORMS, tree_leaves, tree_map, tree_map_only
from lorpman.errors import UsageError
from lorpman.manifold.stacked_outputs import PerPreference

_PLAIN = (bool, int, float, str, type(None))


def check_batched(network: nn.Module, frozen: bool) -> bool:
    """Refuse a network in which samples see each other, and so would preferences.

    Args:
        network: Any module.
        frozen: Whether it stays as it came; only then can samples have preferences of their own.

    Returns:
        True, if it is not refused.

    Raises:
        UsageError: With the layer.
    """
    if not frozen:
        raise UsageError("batched=True belongs to frozen=True; leave it out, or freeze the network")
    for name, module in network.named_modules():
        if isinstance(module, BATCH_NORMS):
            raise UsageError(
                f"batched=True runs samples of all preferences together, but the {_kind(module)} "
                f"'{name}' normalises over them; leave batched out"
            )
    return True


def count_samples(x: Any) -> int:
    """How many samples a batch has.

    Args:
        x: Any structure with tensors in it.

    Raises:
        UsageError: If its tensors are not all led by the same number.
    """
    tensors = [leaf for leaf in tree_leaves(x) if isinstance(leaf, Tensor)]
    leading = {len(value) if value.ndim else None for value in tensors}
    if len(leading) != 1 or None in leading:
        shapes = ", ".join(str(list(value.shape)) for value in tensors) or "no tensor"
        raise UsageError(
            f"batched=True needs inputs that are all led by the samples, found {shapes}; leave "
            "batched out"
        )
    return next(iter(leading)) or 0


def repeat_batch(x: Any, times: int) -> Any:
    """The batch ``times`` times over, one copy after the other.

    Args:
        x: Any structure; what is no tensor stays as it is.
        times: How often.
    """
    return tree_map_only(Tensor, lambda value: torch.cat([value] * times), x)


def split_batch(outputs: Any, times: int) -> Any:
    """Outputs for a repeated batch, as if every copy had been run on its own.

    Args:
        outputs: Any structure, of tensors led by ``times`` n samples.
        times: How often the batch was repeated, b.

    Returns:
        The same structure with tensors ``[b, n, ...]``, as
        :func:`~lorpman.manifold.stacked_outputs.stack_outputs` gives it.

    Raises:
        UsageError: If an output is not one per sample.
    """

    def split(value: Any) -> Any:
        if isinstance(value, Tensor) and value.ndim and len(value) % times == 0:
            return value.unflatten(0, (times, -1))
        if isinstance(value, _PLAIN):
            return PerPreference([value] * times)
        found = f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else _kind(value)
        raise UsageError(
            f"batched=True needs outputs with one row per sample, found {found}; ask the network "
            "for less (labels=None, use_cache=False), or leave batched out"
        )

    return tree_map(split, outputs)


def _kind(value: object) -> str:
    return type(value).__name__
