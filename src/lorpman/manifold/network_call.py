"""How a network is given its batch: as one value, or by keywords."""

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def call_network(network: nn.Module, x: Any) -> Any:
    """What ``network`` gives for ``x``.

    Args:
        network: Any module.
        x: Its batch. A mapping whose keys are parameters of ``network.forward``, as tokenizers of
            transformers give it, is passed as keywords; anything else is passed as it is.

    >>> class Shift(nn.Module):
    ...     def forward(self, value, by=1):
    ...         return value + by
    >>> call_network(Shift(), 2), call_network(Shift(), {"value": 2, "by": 5})
    (3, 7)
    """
    positional, keywords = arguments(network, x)
    return network(*positional, **keywords)


def arguments(network: nn.Module, x: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What :func:`call_network` passes, as the positional and the keyword arguments of a call.

    Args:
        network: The network.
        x: Its input.
    """
    if isinstance(x, Mapping) and _are_keywords(network, x):
        return (), dict(x)
    return (x,), {}


def _are_keywords(network: nn.Module, x: Mapping[Any, Any]) -> bool:
    parameters = inspect.signature(network.forward).parameters.values()
    named = {parameter.name for parameter in parameters if parameter.kind in _NAMED}
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        # It takes every keyword; one that it names shows that keywords are what it expects.
        return not named.isdisjoint(x) and all(isinstance(key, str) for key in x)
    return bool(x) and named.issuperset(x)
