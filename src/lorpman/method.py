"""What a method is: a manifold, a rule, and the settings of both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from lorpman.manifold.base import Manifold
from lorpman.rule import Rule
from lorpman.settings import Group

Shared = Sequence[str] | None


@dataclass(frozen=True)
class Method:
    """How a method turns a network into a manifold, and losses into gradients."""

    name: str
    summary: str
    kind: Literal["continuous", "discrete", "single"]
    settings: type[Group]
    manifold: Callable[[nn.Module, int, Shared, Any], Manifold]
    """(network, number of tasks, shared prefixes, settings)"""
    rule: Callable[[Any], Rule]
