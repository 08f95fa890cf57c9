"""What a method is: a manifold, a rule, and the settings of both."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

from lorpman.lab.settings import SettingsGroup
from lorpman.manifold.base import Manifold
from lorpman.preference import Sampler
from lorpman.rules.base import Rule

SharedPrefixes = Sequence[str] | None
"""Prefixes of the parameter names that a manifold adapts; None for the manifold's own choice."""

MakeManifold = Callable[[nn.Module, int, SharedPrefixes, Any], Manifold]
"""From a network, the number of tasks, the shared prefixes and the method's settings."""


@dataclass(frozen=True)
class Method:
    """One row of the registry: how a network becomes a manifold, and losses become gradients.

    The rows are in ``continuous.py``, ``discrete.py`` and ``single.py``, by ``kind``.

    Args:
        name: What ``--method`` takes.
        summary: One line for ``lorpman methods``, with the venue of its paper.
        kind: ``continuous`` gives a network for every preference, ``discrete`` a finite set of
            networks, ``single`` one network (or one per task) that knows no preference.
        settings: The settings that only this method has.
        manifold: Makes the manifold from (network, number of tasks, shared prefixes, settings).
        rule: Makes the rule from the settings.
        sampler: Makes what draws the preferences of a training step from the settings; without
            one, the setting ``sampling`` or the manifold decides.
        defaults: Settings that belong to the method whatever the problem. They stand above what
            a preset sets for all methods, and below what it sets for this one.
    """

    name: str
    summary: str
    kind: Literal["continuous", "discrete", "single"]
    settings: type[SettingsGroup]
    manifold: MakeManifold
    rule: Callable[[Any], Rule]
    sampler: Callable[[Any], Sampler] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def takes_sampling(self) -> bool:
        """Whether the setting ``sampling`` decides which preferences are drawn.

        The members of a discrete front have fixed preferences, and a method with a sampler of
        its own needs that one.
        """
        return self.kind == "continuous" and self.sampler is None
