"""Copies of networks: what stands in their way is named."""

import copy
from collections.abc import Iterator
from typing import Any, TypeVar

from torch import Tensor, nn

from lorpman._torch import plain_attributes, tree_leaves
from lorpman.errors import UsageError

_Module = TypeVar("_Module", bound=nn.Module)


def copy_network(network: _Module) -> _Module:
    """A copy that shares nothing with ``network``.

    Args:
        network: Any module.

    Raises:
        UsageError: If it holds something that cannot be copied; the message names the module.
    """
    try:
        return copy.deepcopy(network)
    except Exception as error:  # whatever a user's object raises when it is copied
        kept = [
            f"{at(name)} keeps a computed tensor in its attribute '{key}'"
            for name, key, value in attributes(network)
            if isinstance(value, Tensor) and value.grad_fn is not None
        ]
        if not kept:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(f"{type(network).__name__} cannot be copied: {reason}") from error
        raise UsageError(
            f"{type(network).__name__} cannot be copied, since {kept[0]}; keep value.detach(), or "
            "nothing (the older spectral_norm and weight_norm keep one: use those of "
            "torch.nn.utils.parametrizations)"
        ) from None


def attributes(network: nn.Module) -> Iterator[tuple[str, str, Any]]:
    """Every value in plain attributes of a network's modules, those in lists and such included.

    Args:
        network: Any module; its parameters, buffers and modules are no plain attributes.

    Yields:
        The module's full name, the attribute's, and the value.
    """
    for name, module in network.named_modules():
        for key, held in plain_attributes(module).items():
            yield from ((name, key, value) for value in tree_leaves(held))


def at(name: str) -> str:
    """What an error calls the module of a full name.

    Args:
        name: The full name; empty for the network.

    >>> at("bottom.0"), at("")
    ("module 'bottom.0'", 'the network itself')
    """
    return f"module '{name}'" if name else "the network itself"
