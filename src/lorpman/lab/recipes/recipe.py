"""Recipes: settings by name that go over any problem's preset, one YAML file each."""

from collections.abc import Container, Mapping
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import Field

from lorpman.errors import UsageError, unknown
from lorpman.lab.problems.problem import Layer
from lorpman.lab.settings import Training


def recipe_names() -> list[str]:
    """What ``--recipe`` takes."""
    files = resources.files(__package__).iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


class Recipe(Layer):
    """Settings that were found with one optimiser, and rates as multiples of the preset's own.

    Where preset or user choose another optimiser, rate, schedule and weight decay stay as they are.
    """

    optimizer: str
    rates: dict[str, float] = Field(default_factory=dict)
    """Times the preset's learning rate, by method."""

    def over(
        self,
        values: Mapping[str, Any],
        method: str,
        held: Container[str] = (),
        told: Mapping[str, Any] = {},
    ) -> dict[str, Any]:
        """``values``, a preset's, with what this recipe sets where the user has ``told`` this."""
        if method not in self.methods:
            raise UsageError(
                f"the recipe has no settings for method '{method}', only for "
                f"{', '.join(sorted(self.methods))}; leave --recipe out"
            )
        defaults = {name: field.default for name, field in Training.model_fields.items()}
        before, taken = {**defaults, **values}, self.of(method, held)
        if {before["optimizer"], {**before, **told}["optimizer"]} == {self.optimizer}:
            # Rounded, so that six times a thousandth is what people write for it.
            rate = float(f"{self.rates.get(method, 1.0) * before['learning_rate']:.9g}")
            return {**values, **taken, "learning_rate": rate}
        apart = Training.OF_THE_OPTIMIZER
        return {**values, **{key: value for key, value in taken.items() if key not in apart}}


@cache
def get_recipe(name: str) -> Recipe:
    """The recipe called ``name``."""
    if name not in recipe_names():
        raise unknown("recipe", name, recipe_names())
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text()
    return Recipe.model_validate(yaml.safe_load(text))
