"""The methods that give a finite set of networks along the front: settings and rows.

To add one, put its rule into ``lorpman/rules``, and a row into :data:`DISCRETE`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import Field
from torch import nn

from lorpman import rules
from lorpman.lab.methods.method import MakeManifold, Method, SharedPrefixes
from lorpman.lab.settings import SettingsGroup
from lorpman.manifold.base import Manifold
from lorpman.manifold.film import Film
from lorpman.manifold.finite import Population, rays
from lorpman.manifold.learned_preferences import Learned
from lorpman.manifold.low_rank import LowRank
from lorpman.preference import grid, in_turn
from lorpman.rules.base import Rule
from lorpman.rules.objective import Linear


class PopulationSettings(SettingsGroup):
    """EPO's settings, and part of PMTL's."""

    members: int = Field(5, ge=1)


class PmtlSettings(PopulationSettings):
    """PMTL's settings."""

    cone_epochs: int = Field(2, ge=0)
    """Epochs in which every network only looks for its own cone."""


class SvgdSettings(SettingsGroup):
    """MOO-SVGD's settings."""

    members: int = Field(15, ge=2)
    bandwidth: float | None = Field(None, gt=0)
    """Of the kernel on losses; the median heuristic where unset."""


class PngSettings(SettingsGroup):
    """PNG's settings."""

    members: int = Field(15, ge=2)
    descent: float = Field(0.5, gt=0, le=1)
    tolerance: float = Field(0.1, ge=0)


class GmooarSettings(SettingsGroup):
    """The settings of both forms of GMOOAR."""

    members: int = Field(15, ge=1)
    conditioning: Literal["film", "low-rank"] = "film"
    """FiLM as published, or LORPMAN's deltas, which need no activations in the network."""
    stages: tuple[str, ...] = ()
    """Where FiLM modulates features; those the network declares if none."""
    rank: int = Field(8, ge=1)
    """Of the deltas."""
    reference_rate: float = Field(0.005, gt=0)
    kernel_width: float = Field(0.01, gt=0)


class RetrainSettings(SettingsGroup):
    """Retraining's settings."""

    members: int | None = Field(None, ge=1)
    """Networks, on a grid; default: 5 for up to three tasks, else one for equal weights and two for
    each task, at weights 0.3 and 1."""


def _population(
    network: nn.Module, num_tasks: int, shared: SharedPrefixes, settings: Any
) -> Manifold:
    return Population(network, rays(num_tasks, settings.members), shared)


def _one_per_preference(
    network: nn.Module, num_tasks: int, shared: SharedPrefixes, settings: RetrainSettings
) -> Manifold:
    if settings.members is None and num_tasks > 3:
        alphas = in_turn(num_tasks)
    else:
        alphas = grid(num_tasks, settings.members or 5)
    # From one start, as the same script run k times would: a pretrained network stays one.
    return Population(network, alphas, shared, independent=False)


def _learned_preferences(
    network: nn.Module, num_tasks: int, shared: SharedPrefixes, settings: GmooarSettings
) -> Manifold:
    inner: Manifold
    if settings.conditioning == "film":
        inner = Film(network, num_tasks, settings.stages or None)
    else:
        inner = LowRank(network, num_tasks, rank=settings.rank, shared=shared)
    return Learned(inner, settings.members)


def _gmooar(quality: Literal["uniform", "hypervolume"]) -> Callable[[GmooarSettings], Rule]:
    return lambda settings: rules.GMOOAR(quality, settings.reference_rate, settings.kernel_width)


def _discrete(
    name: str,
    summary: str,
    settings: type[SettingsGroup],
    rule: Callable[[Any], Rule],
    manifold: MakeManifold = _population,
) -> Method:
    return Method(name, summary, "discrete", settings, manifold, rule)


DISCRETE: Sequence[Method] = (
    _discrete(
        "retrain",
        "one network per preference, each trained for it alone: what one does without a front",
        RetrainSettings,
        lambda settings: Linear(),
        _one_per_preference,
    ),
    _discrete(
        "pmtl",
        "one network per cone of the loss space (NeurIPS 2019)",
        PmtlSettings,
        lambda settings: rules.PMTL(settings.cone_epochs),
    ),
    _discrete(
        "epo",
        "one network on each preference's ray (ICML 2020)",
        PopulationSettings,
        lambda settings: rules.Epo(),
    ),
    _discrete(
        "moo-svgd",
        "networks that descend and repel in loss space (NeurIPS 2021)",
        SvgdSettings,
        lambda settings: rules.MOOSVGD(settings.bandwidth),
    ),
    _discrete(
        "png",
        "networks that descend, then spread along the front (NeurIPS 2022)",
        PngSettings,
        lambda settings: rules.PNG(settings.descent, settings.tolerance),
    ),
    _discrete(
        "gmooar-u",
        "learned preferences, spread evenly (NeurIPS 2022)",
        GmooarSettings,
        _gmooar("uniform"),
        _learned_preferences,
    ),
    _discrete(
        "gmooar-hv",
        "learned preferences, for hypervolume (NeurIPS 2022)",
        GmooarSettings,
        _gmooar("hypervolume"),
        _learned_preferences,
    ),
)
"""The rows, in the order in which ``lorpman methods`` lists them."""
