"""Layers of settings: what a problem sets for every method and for single ones, over the defaults.

The paper's problems have theirs in ``presets/<name>.yaml``.
"""

from collections.abc import Container, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import Field

from lorpman.lab.settings import SettingsGroup


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
            method: The name of the method.
            protected: Settings that belong to the method: only this layer's settings for this
                very method may change them, not those for all methods.

        Returns:
            Settings by name.
        """
        common = {key: value for key, value in self.settings.items() if key not in protected}
        return {**common, **self.methods.get(method, {})}

    def laid_over(
        self, values: Mapping[str, Any], method: str, protected: Container[str] = ()
    ) -> dict[str, Any]:
        """``values`` with what this layer sets for ``method``; see :meth:`settings_for`.

        Args:
            values: The settings below this layer.
            method: As in :meth:`settings_for`.
            protected: As in :meth:`settings_for`.
        """
        return {**values, **self.settings_for(method, protected)}


class LaptopReduction(SettingsLayer):
    """The settings that change so that a problem trains on a small machine."""

    stated: str
    """The reduction in words, for captions."""


class Preset(SettingsLayer):
    """Everything a problem says about settings; for the paper's problems also its results."""

    laptop: LaptopReduction | None = None
    """On top, for a 2-core machine; a stated reduction, never the paper's protocol."""
    search: dict[str, list[int | float]] = Field(default_factory=dict)
    """The ranges over which settings are chosen on validation data."""
    published: dict[str, PublishedResult] = Field(default_factory=dict)
    """Results by method, as printed in the paper."""


@cache
def read_preset(name: str) -> Preset:
    """The preset file ``presets/<name>.yaml`` of this folder.

    Args:
        name: The name of a built-in problem.
    """
    text = resources.files("lorpman.lab.problems").joinpath(f"presets/{name}.yaml").read_text()
    return Preset.model_validate(yaml.safe_load(text))
