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
from lorpman.lab.settings import NoSettings, SettingsGroup
from lorpman.manifold.base import Manifold
from lorpman.task import Task


class PublishedResult(SettingsGroup):
    """What the paper reports for a method; never a result of this code."""

    hypervolume: float
    deviation: float
    parameters: float


class SettingsLayer(SettingsGroup):
    """Settings for every method, and on top of them settings by method.

    Layers lie over each other: a problem's preset, its reduction for laptops, a recipe.
    """

    settings: dict[str, Any] = Field(default_factory=dict)
    methods: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def settings_for(self, method: str, protected: Container[str] = ()) -> dict[str, Any]:
        """What this layer sets for one method.

        Args:
            method: the name of the method.
            protected: settings that belong to the method: only this layer's settings for this
                very method may change them, not those for all methods.

        Returns:
            Settings by name.
        """
        common = {key: value for key, value in self.settings.items() if key not in protected}
        return {**common, **self.methods.get(method, {})}

    def laid_over(
        self, values: Mapping[str, Any], method: str, protected: Container[str] = ()
    ) -> dict[str, Any]:
        """``values`` with what this layer sets for ``method``; see :meth:`settings_for`."""
        return {**values, **self.settings_for(method, protected)}


class LaptopReduction(SettingsLayer):
    """What a small machine changes."""

    stated: str
    """The reduction in words, for captions."""


class Preset(SettingsLayer):
    """A problem's preset file: the paper's settings, ranges and results."""

    laptop: LaptopReduction | None = None
    """On top, for a 2-core machine; a stated reduction, never the paper's protocol."""
    search: dict[str, list[int | float]] = Field(default_factory=dict)
    """The ranges over which the paper chose settings on validation data."""
    published: dict[str, PublishedResult] = Field(default_factory=dict)
    """Results by method, as printed in the paper."""


@dataclass(frozen=True)
class Problem:
    """One row of the registry of problems: tasks, a network, data, and settings.

    Args:
        name: what the command line takes; also the name of the preset file.
        summary: one line for ``lorpman problems``.
        tasks: makes the tasks from the problem's settings.
        network: makes a fresh network from the settings; called after the seed is set.
        load: reads the splits from (data directory, settings); problems that need no files
            ignore the directory.
        settings: the settings that only this problem has.
        shared: prefixes of the parameters that are adapted, where the manifold's choice is not
            right.
        start: moves a fresh manifold to the problem's own starting point.
        trace: plain values to be logged after every epoch, for ``figure``.
        figure: draws a picture of its own from (the log of all epochs, front, file).
        show: how one input looks to people: a function of it that gives an image
            ``[1 or 3, h, w]``, a dict (a row of a table, by column) or a text. None shows it by
            its shape.
    """

    name: str
    summary: str
    tasks: Callable[[Any], list[Task]]
    network: Callable[[Any], nn.Module]
    load: Callable[[Path, Any], Splits]
    settings: type[SettingsGroup] = NoSettings
    shared: Sequence[str] | None = None
    start: Callable[[Manifold], None] | None = None
    trace: Callable[[Manifold], Mapping[str, Any]] | None = None
    figure: Callable[[Sequence[Mapping[str, Any]], Front, Path], None] | None = None
    show: Callable[[Any], Any] | None = None

    def preset(self) -> Preset:
        """The problem's preset file, ``presets/<name>.yaml``."""
        return _read_preset(self.name)


@cache
def _read_preset(name: str) -> Preset:
    text = resources.files("lorpman.lab.problems").joinpath(f"presets/{name}.yaml").read_text()
    return Preset.model_validate(yaml.safe_load(text))
