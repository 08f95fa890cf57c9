"""Recipes: settings by name that go over any problem's preset, one YAML file each."""

from collections.abc import Container, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import Field

from lorpman.errors import UsageError, unknown
from lorpman.lab.problems.preset import SettingsLayer
from lorpman.lab.settings import TrainingSettings


class Recipe(SettingsLayer):
    """Settings that were found with one optimiser, and rates as multiples of the preset's own.

    Where preset or user choose another optimiser, rate, schedule and weight decay stay as they are.
    """

    optimizer: str
    rates: dict[str, float] = Field(default_factory=dict)
    """Times the preset's learning rate, by method."""

    def laid_over(
        self,
        values: Mapping[str, Any],
        method: str,
        protected: Container[str] = (),
        user: Mapping[str, Any] = {},
    ) -> dict[str, Any]:
        """A preset's settings with what this recipe sets.

        Args:
            values: The preset's settings.
            method: The name of the method.
            protected: Settings of the method itself, see :meth:`SettingsLayer.settings_for`.
            user: What the user has set. It is not part of the answer, but decides with which
                optimiser the recipe has to get along.

        Returns:
            Settings by name.

        Raises:
            UsageError: If the recipe has no settings for this method.
        """
        if method not in self.methods:
            raise UsageError(
                f"the recipe has no settings for method '{method}', only for "
                f"{', '.join(sorted(self.methods))}; leave --recipe out"
            )
        defaults = {name: field.default for name, field in TrainingSettings.model_fields.items()}
        preset, recipe = {**defaults, **values}, self.settings_for(method, protected)
        # The rate is a multiple of the preset's: that needs the same optimiser in both, and one
        # that the user has not replaced.
        if {preset["optimizer"], {**preset, **user}["optimizer"]} == {self.optimizer}:
            # Rounded, so that six times a thousandth is what people write for it.
            rate = float(f"{self.rates.get(method, 1.0) * preset['learning_rate']:.9g}")
            return {**values, **recipe, "learning_rate": rate}
        other = {k: v for k, v in recipe.items() if k not in TrainingSettings.OF_THE_OPTIMIZER}
        return {**values, **other}


def recipe_names() -> list[str]:
    """What ``--recipe`` takes: the names of the YAML files of this folder, sorted."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


@cache
def get_recipe(name: str) -> Recipe:
    """Look a recipe up.

    Args:
        name: One of :func:`recipe_names`.

    Returns:
        The recipe of that name.

    Raises:
        UsageError: If there is no such recipe; the message suggests the nearest name.
    """
    if name not in recipe_names():
        raise unknown("recipe", name, recipe_names())
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text()
    return Recipe.model_validate(yaml.safe_load(text))
