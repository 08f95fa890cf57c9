"""The methods that give one network (or one per task) and know no preference: settings and rows.

To add one, put its rule into ``lorpman/rules``, and a row into :data:`SINGLE`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from pydantic import Field
from torch import nn

from lorpman import rules
from lorpman.lab.methods.method import MakeManifold, Method, SharedPrefixes
from lorpman.lab.settings import NoSettings, SettingsGroup
from lorpman.manifold.base import Manifold
from lorpman.manifold.finite import Population, Single
from lorpman.rules.base import Rule
from lorpman.rules.mgda import Normalisation
from lorpman.rules.objective import Linear
from lorpman.rules.pcgrad import Reduction
from lorpman.rules.rotograd import with_rotations


class UwSettings(SettingsGroup):
    """Uncertainty weighting's settings."""

    initial_scale: float = 0.0
    """Of every task, at the start; it is learned from there."""


class DwaSettings(SettingsGroup):
    """Dynamic weight average's settings."""

    temperature: float = Field(2.0, gt=0)
    period: int | None = Field(None, ge=1)
    """Steps per period; an epoch where unset."""


class MgdaSettings(SettingsGroup):
    """MGDA's settings."""

    normalisation: Normalisation = "none"


class FeatureMgdaSettings(SettingsGroup):
    """MGDA-UB's settings."""

    normalisation: Normalisation = "loss+"


class PcgradSettings(SettingsGroup):
    """PCGrad's settings."""

    reduction: Reduction = "sum"


class GraddropSettings(SettingsGroup):
    """GradDrop's settings."""

    let_through: float = Field(0.0, ge=0, le=1)
    """The share of the whole gradient that passes whatever its sign."""


class CagradSettings(SettingsGroup):
    """CAGrad's settings."""

    c: float = Field(0.4, ge=0, lt=1)
    rescale: bool = True


class NashSettings(SettingsGroup):
    """Nash-MTL's settings."""

    update_every: int = Field(1, ge=1)
    """Steps for which the weights of one bargain are used."""
    max_norm: float | None = Field(1.0, gt=0)
    """A longer shared gradient is shortened to this length; null leaves it."""


class RotogradSettings(SettingsGroup):
    """RotoGrad's settings."""

    rotation_size: int | None = Field(None, ge=1)
    """How many features are rotated; where unset, all of them up to 512."""
    rotation_rate: float = Field(0.1, gt=0)
    """Times the learning rate."""
    burn_in: int = Field(20, ge=0)


class AutoLambdaSettings(SettingsGroup):
    """Auto-Lambda's settings."""

    initial_weight: float = 0.1
    weight_rate: float = Field(1e-4, gt=0)
    """The learning rate of the task weights."""


def _one_network(
    network: nn.Module, num_tasks: int, shared: SharedPrefixes, settings: SettingsGroup
) -> Manifold:
    del settings
    return Single(network, num_tasks, shared)


def _one_per_task(
    network: nn.Module, num_tasks: int, shared: SharedPrefixes, settings: SettingsGroup
) -> Manifold:
    del settings
    # A member at each corner of the simplex is trained with all weight on one task.
    return Population(network, torch.eye(num_tasks), shared)


def _rotated_network(
    network: nn.Module, num_tasks: int, shared: SharedPrefixes, settings: RotogradSettings
) -> Manifold:
    return Single(with_rotations(network, settings.rotation_size), num_tasks, shared)


def _single(
    name: str,
    summary: str,
    settings: type[SettingsGroup],
    rule: Callable[[Any], Rule],
    manifold: MakeManifold = _one_network,
) -> Method:
    return Method(name, summary, "single", settings, manifold, rule)


SINGLE: Sequence[Method] = (
    _single(
        "stl", "one network per task, alone", NoSettings, lambda settings: Linear(), _one_per_task
    ),
    _single("ls", "the mean of the losses", NoSettings, lambda settings: Linear()),
    _single(
        "uw",
        "losses scaled by learned uncertainties (CVPR 2018)",
        UwSettings,
        lambda settings: rules.UncertaintyWeighting(settings.initial_scale),
    ),
    _single(
        "dwa",
        "more weight where a loss stopped falling (CVPR 2019)",
        DwaSettings,
        lambda settings: rules.DynamicWeightAverage(settings.temperature, settings.period),
    ),
    _single(
        "rlw",
        "random weights in every step (TMLR 2022)",
        NoSettings,
        lambda settings: rules.RandomWeighting(),
    ),
    _single(
        "mgda",
        "the shortest combination of gradients (NeurIPS 2018)",
        MgdaSettings,
        lambda settings: rules.MGDA(settings.normalisation),
    ),
    _single(
        "mgda-ub",
        "mgda at the shared features: one pass for all tasks (NeurIPS 2018)",
        FeatureMgdaSettings,
        lambda settings: rules.FeatureMGDA(settings.normalisation),
    ),
    _single(
        "pcgrad",
        "gradients projected off those they conflict with (NeurIPS 2020)",
        PcgradSettings,
        lambda settings: rules.PCGrad(settings.reduction),
    ),
    _single(
        "imtl",
        "equal projections of gradients whose losses are scaled to one (ICLR 2021)",
        NoSettings,
        lambda settings: rules.IMTL(),
    ),
    _single(
        "imtl-l",
        "losses scaled to one (ICLR 2021)",
        NoSettings,
        lambda settings: rules.ImpartialLosses(),
    ),
    _single(
        "imtl-g",
        "equal projections of the gradients (ICLR 2021)",
        NoSettings,
        lambda settings: rules.IMTL(scale_losses=False),
    ),
    _single(
        "graddrop",
        "gradients of one sign per parameter, by chance (NeurIPS 2020)",
        GraddropSettings,
        lambda settings: rules.GradDrop(settings.let_through),
    ),
    _single(
        "cagrad",
        "near the mean gradient, best for the worst-off task (NeurIPS 2021)",
        CagradSettings,
        lambda settings: rules.CAGrad(settings.c, settings.rescale),
    ),
    _single(
        "nash-mtl",
        "a bargain between tasks, indifferent to loss scales (ICML 2022)",
        NashSettings,
        lambda settings: rules.NashMTL(settings.update_every, settings.max_norm),
    ),
    _single(
        "rotograd",
        "features rotated so that gradients align (ICLR 2022)",
        RotogradSettings,
        lambda settings: rules.RotoGrad(settings.rotation_rate, settings.burn_in),
        _rotated_network,
    ),
    _single(
        "auto-lambda",
        "weights that lower the loss on other data (TMLR 2022)",
        AutoLambdaSettings,
        lambda settings: rules.AutoLambda(settings.initial_weight, settings.weight_rate),
    ),
    _single(
        "upgrad",
        "gradients projected so that none conflicts, by torchjd (2024)",
        NoSettings,
        lambda settings: rules.TorchJD("UPGrad"),
    ),
    _single(
        "aligned-mtl",
        "gradients made orthogonal and equally long, by torchjd (CVPR 2023)",
        NoSettings,
        lambda settings: rules.TorchJD("AlignedMTL"),
    ),
)
"""The rows, in the order in which ``lorpman methods`` lists them."""
