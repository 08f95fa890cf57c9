"""What a problem is: data, network, tasks, and the preset with the paper's settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field
from torch import nn

from lorpman.data.base import Splits
from lorpman.front import Front
from lorpman.manifold.base import Manifold
from lorpman.settings import Group
from lorpman.task import Task


class NoSettings(Group):
    """For a problem that has nothing to set."""


class Preset(Group):
    """A problem's preset file."""

    settings: dict[str, Any] = Field(default_factory=dict)
    """For every method."""
    methods: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """On top, by method."""


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
    text = resources.files("lorpman.problems").joinpath(f"presets/{name}.yaml").read_text()
    return Preset.model_validate(yaml.safe_load(text))
