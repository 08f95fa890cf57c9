"""Copies of a network's structure that share its tensors."""

import copy
from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import nn

from lorpman._torch import attributes, twin_modules


def copy_sharing_weights(network: nn.Module) -> nn.Module:
    """A copy whose parameters are others, but lie in the same memory.

    What the copy asks of a gradient is its own affair, and buffers are copied.

    Args:
        network: Any module; its parameters must not be changed as long as the copy is used.
    """
    # A class of its own for parameters means codes and scales, which only it can handle.
    memo: dict[int, Any] = {
        id(p): nn.Parameter(p.detach(), p.requires_grad) if type(p) is nn.Parameter else p
        for p in network.parameters()
    }
    return copy.deepcopy(network, memo)


def view_modules(network: nn.Module, hidden: bool) -> dict[nn.Module, nn.Module]:
    """A second structure over the same parameters and buffers, in milliseconds.

    Modules are new objects of the same class; their dictionaries of parameters, buffers and hooks
    are the same ones. So a module of the view can be changed without a trace in the network.

    Args:
        network: Any module.
        hidden: Whether it :func:`has_hidden_references`; then it takes longer.

    Returns:
        For every module of the network the one that stands for it, the whole network first.
    """
    # Only a deep copy finds modules in lists, methods and partials; given the tensors as already
    # copied, it leaves them where they are.
    if hidden:
        tensors = [*network.parameters(), *network.buffers()]
        twin = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})
        return dict(zip(network.modules(), twin.modules(), strict=True))
    return twin_modules(network)


def has_hidden_references(network: nn.Module) -> bool:
    """Whether a module holds another one elsewhere than among its children, in a list perhaps.

    Args:
        network: The network.
    """
    return any(_holds_module(value) for m in network.modules() for value in attributes(m))


def _holds_module(value: object) -> bool:
    # A bound method holds its module as __self__.
    if isinstance(value, nn.Module) or isinstance(getattr(value, "__self__", None), nn.Module):
        return True
    if isinstance(value, partial):
        return any(map(_holds_module, (value.func, *value.args, *value.keywords.values())))
    if isinstance(value, Mapping):
        return any(map(_holds_module, value.values()))
    return isinstance(value, list | tuple | set) and any(map(_holds_module, value))
