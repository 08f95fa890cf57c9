"""What a method is: a manifold, a rule, and the settings of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

from lorpman.lab.settings import Group
from lorpman.manifold.base import Manifold
from lorpman.preference import Sampler
from lorpman.rules.base import Rule

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
    sampler: Callable[[Any], Sampler] | None = None
    """Draws the preferences of training steps, where that is not the manifold's own way."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What belongs to the method whatever the problem; above a preset's settings for all
    methods, below those for this one."""

    @property
    def takes_sampling(self) -> bool:
        """Whether the setting ``sampling`` decides its preferences."""
        return self.kind == "continuous" and self.sampler is None
