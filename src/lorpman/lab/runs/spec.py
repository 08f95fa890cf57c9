"""What decides a run's numbers: a problem, a method, a seed and all their settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from lorpman.errors import UsageError, unknown, whole_number
from lorpman.lab.datasets.splits import Splits
from lorpman.lab.fixed_seed import fixed_seed, seed_all
from lorpman.lab.methods.method import Method
from lorpman.lab.methods.registry import get_method, settings_of_all_methods
from lorpman.lab.problems.own_problem import find_problem
from lorpman.lab.problems.preset import SettingsLayer
from lorpman.lab.problems.problem import Problem
from lorpman.lab.recipes.recipe import get_recipe
from lorpman.lab.settings import DEFAULT_SAMPLING, SettingsGroup, TrainingSettings, distribute
from lorpman.manifold.base import Manifold
from lorpman.preference import Sampler
from lorpman.task import Task

Scale = Literal["paper", "laptop"]


@dataclass(frozen=True)
class Spec:
    """Everything that decides a run's numbers, before anything is loaded."""

    problem: Problem
    """What is trained."""
    method: Method
    """How."""
    seed: int
    """Decides all that is drawn."""
    training: TrainingSettings
    """What every method is trained with."""
    own: SettingsGroup
    """The method's settings."""
    data: SettingsGroup
    """The problem's settings."""
    scale: Scale = "paper"
    """laptop where the preset was reduced; told, but no part of the identity."""
    recipe: str | None = None
    """The recipe that the settings started from; likewise."""

    @classmethod
    def make(
        cls,
        problem: str | Problem,
        method: str,
        seed: int,
        overrides: Mapping[str, Any],
        scale: Scale = "paper",
        recipe: str | None = None,
    ) -> "Spec":
        """The preset at the given scale, then the recipe, then ``overrides``; later ones win.

        Args:
            problem: What :func:`~lorpman.lab.problems.own_problem.find_problem` takes.
            method: Its name.
            seed: Decides the network's start, the order of data and the preferences.
            overrides: Settings by name, as ``--set`` has them.
            scale: "laptop" for what the preset reduces on a small machine, if it does.
            recipe: Its name; None for none.

        Raises:
            UsageError: If a name or setting is unknown, or a value of it cannot be.
        """
        seed = whole_number("seed", seed, least=0)
        if not isinstance(scale, str) or scale not in get_args(Scale):
            raise unknown("scale", scale, get_args(Scale))
        row, rival = find_problem(problem), get_method(method)
        preset = row.preset()
        reduced = preset.laptop if scale == "laptop" else None
        layers: list[SettingsLayer] = [preset, reduced] if reduced else [preset]
        # A method's defaults are part of its definition (one preference per batch, for instance); a
        # layer changes them only in its settings for this very method.
        values = dict(rival.defaults)
        for layer in layers:
            values = layer.laid_over(values, method, rival.defaults)
        if recipe is not None:
            values = get_recipe(recipe).laid_over(values, method, rival.defaults, overrides)
        groups: dict[str, type[SettingsGroup]] = {
            "training": TrainingSettings,
            "own": rival.settings,
            "data": row.options,
        }
        parts = distribute(_without_those_of_others(values, groups) | dict(overrides), groups)
        training = parts["training"]
        assert isinstance(training, TrainingSettings)
        sampled = training.sampling != DEFAULT_SAMPLING or training.corners > 0
        if sampled and not rival.takes_sampling:
            raise UsageError(f"{method} draws no preferences by sampling; leave it out")
        # A preset without a reduction is the paper's protocol, whatever was asked for.
        taken: Scale = scale if reduced else "paper"
        return cls(row, rival, seed, training, parts["own"], parts["data"], taken, recipe)

    def settings(self) -> dict[str, Any]:
        """All settings as one flat, JSON-ready mapping."""
        groups = (self.training, self.own, self.data)
        return {k: v for group in groups for k, v in group.model_dump(mode="json").items()}

    def identity(self) -> dict[str, Any]:
        """What two runs must share to be the same run."""
        # How often one looks at a run changes none of its numbers.
        settings = {k: v for k, v in self.settings().items() if k not in TrainingSettings.WATCHING}
        return {**self.described(), "settings": settings}

    def described(self) -> dict[str, Any]:
        """What makes this again: :meth:`make` and the scale take it."""
        return {
            "problem": self.problem.name,
            "method": self.method.name,
            "seed": self.seed,
            "settings": self.settings(),
        }

    def tasks(self) -> list[Task]:
        """The problem's tasks."""
        return self.problem.make_tasks(self.data)

    def load(self, root: Path) -> Splits:
        """The problem's data.

        Args:
            root: Where datasets are.

        Raises:
            UsageError: If a file is missing or damaged.
        """
        # The same for every run: what a problem splits at random must not differ between them.
        with fixed_seed(0):
            return self.problem.load(root, self.data)

    def sampler(self) -> Sampler | None:
        """How preferences are drawn, where the method does not leave that to its manifold."""
        if self.method.sampler is not None:
            return self.method.sampler(self.own)
        return self.training.make_sampler() if self.method.takes_sampling else None

    def build(self) -> Manifold:
        """The untrained manifold; the seed decides its start."""
        seed_all(self.seed)
        network = self.problem.make_network(self.data)
        model = self.method.manifold(network, len(self.tasks()), self.problem.shared, self.own)
        if self.problem.start is not None:
            self.problem.start(model)
        return model


def _without_those_of_others(
    values: Mapping[str, Any], groups: Mapping[str, type[SettingsGroup]]
) -> dict[str, Any]:
    """What a problem sets for all methods, but for what only other methods have."""
    known = {key for group in groups.values() for key in group.model_fields}
    if known >= set(values):
        return dict(values)
    others = settings_of_all_methods()
    return {key: value for key, value in values.items() if key in known or key not in others}
