"""Recipes: settings by name that go over any problem's preset, one YAML file each."""

from functools import cache
from importlib import resources

import yaml

from lorpman.errors import unknown
from lorpman.problems.base import Layer


def recipe_names() -> list[str]:
    """What ``--recipe`` takes."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


@cache
def get_recipe(name: str) -> Layer:
    """The recipe called ``name``."""
    if name not in recipe_names():
        raise unknown("recipe", name, recipe_names())
    text = resources.files(__name__).joinpath(f"{name}.yaml").read_text()
    return Layer.model_validate(yaml.safe_load(text))
