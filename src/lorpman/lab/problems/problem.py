"""What a problem is: data, network, tasks, and the preset with the paper's settings."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field
from torch import nn

from lorpman.front.front import Front
from lorpman.lab.datasets.splits import Splits
from lorpman.lab.settings import Group
from lorpman.manifold.base import Manifold
from lorpman.task import Task


class NoSettings(Group):
    """For a problem that has nothing to set."""


class Published(Group):
    """What the paper reports for a method; never a result of this code."""

    hypervolume: float
    deviation: float
    parameters: float


class Layer(Group):
    """Settings for every method, and on top of them by method."""

    settings: dict[str, Any] = Field(default_factory=dict)
    methods: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def of(self, method: str, held: Container[str] = ()) -> dict[str, Any]:
        """What this layer sets for ``method``; settings for all methods do not touch ``held``."""
        common = {key: value for key, value in self.settings.items() if key not in held}
        return {**common, **self.methods.get(method, {})}

    def over(
        self, values: Mapping[str, Any], method: str, held: Container[str] = ()
    ) -> dict[str, Any]:
        """``values`` with what this layer sets for ``method``."""
        return {**values, **self.of(method, held)}


class Reduced(Layer):
    """What a small machine changes."""

    stated: str
    """The reduction in words, for captions."""


class Preset(Layer):
    """A problem's preset file: the paper's settings, ranges and results."""

    laptop: Reduced | None = None
    """On top, for a 2-core machine; a stated reduction, never the paper's protocol."""
    search: dict[str, list[int | float]] = Field(default_factory=dict)
    """The ranges over which the paper chose settings on validation data."""
    published: dict[str, Published] = Field(default_factory=dict)
    """Results by method, as printed in the paper."""


@dataclass(frozen=True)
class Problem:
    """One row of the registry of problems."""

    name: str
    summary: str
    tasks: Callable[[Any], list[Task]]
    network: Callable[[Any], nn.Module]
    load: Callable[[Path, Any], Splits]
    """(data directory, settings); problems that need no files ignore the directory."""
    settings: type[Group] = NoSettings
    shared: Sequence[str] | None = None
    """Prefixes of what is adapted, where the default is not right."""
    start: Callable[[Manifold], None] | None = None
    """Moves a fresh manifold to the problem's own starting point."""
    trace: Callable[[Manifold], Mapping[str, Any]] | None = None
    """Plain values noted after every epoch, for :attr:`figure`."""
    figure: Callable[[Sequence[Mapping[str, Any]], Front, Path], None] | None = None
    """Draws a picture of its own from the notes of all epochs."""

    def preset(self) -> Preset:
        return _read_preset(self.name)


@cache
def _read_preset(name: str) -> Preset:
    text = resources.files("lorpman.lab.problems").joinpath(f"presets/{name}.yaml").read_text()
    return Preset.model_validate(yaml.safe_load(text))
