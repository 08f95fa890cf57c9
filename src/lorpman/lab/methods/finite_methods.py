"""The rows of the registry for single-solution methods and discrete fronts."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import nn

from lorpman import rules
from lorpman.lab.methods.method import Method, Shared
from lorpman.lab.settings import Group
from lorpman.manifold.base import Manifold
from lorpman.manifold.film import Film
from lorpman.manifold.finite import Population, Single, rays
from lorpman.manifold.learned_preferences import Learned
from lorpman.manifold.low_rank import LowRank
from lorpman.rules.base import Rule
from lorpman.rules.mgda import Normalisation
from lorpman.rules.objective import Linear
from lorpman.rules.pcgrad import Reduction
from lorpman.rules.rotograd import with_rotations


class Nothing(Group):
    """For a method that has nothing to set."""


class UwSettings(Group):
    initial_scale: float = 0.0


class DwaSettings(Group):
    temperature: float = Field(2.0, gt=0)
    period: int | None = Field(None, ge=1)
    """Steps per period; an epoch where unset."""


class MgdaSettings(Group):
    normalisation: Normalisation = "none"


class FeatureMgdaSettings(Group):
    normalisation: Normalisation = "loss+"


class PcgradSettings(Group):
    reduction: Reduction = "sum"


class GraddropSettings(Group):
    let_through: float = Field(0.0, ge=0, le=1)


class CagradSettings(Group):
    c: float = Field(0.4, ge=0, lt=1)
    rescale: bool = True


class NashSettings(Group):
    update_every: int = Field(1, ge=1)
    max_norm: float | None = Field(1.0, gt=0)


class RotogradSettings(Group):
    rotation_size: int | None = Field(None, ge=1)
    rotation_rate: float = Field(0.1, gt=0)
    """Times the learning rate."""
    burn_in: int = Field(20, ge=0)


class AutoLambdaSettings(Group):
    initial_weight: float = 0.1
    weight_rate: float = Field(1e-4, gt=0)


class Members(Group):
    members: int = Field(5, ge=1)


class PmtlSettings(Members):
    cone_epochs: int = Field(2, ge=0)


class SvgdSettings(Group):
    members: int = Field(15, ge=2)
    bandwidth: float | None = Field(None, gt=0)
    """Of the kernel on losses; the median heuristic where unset."""


class PngSettings(Group):
    members: int = Field(15, ge=2)
    descent: float = Field(0.5, gt=0, le=1)
    tolerance: float = Field(0.1, ge=0)


class GmooarSettings(Group):
    members: int = Field(15, ge=1)
    conditioning: Literal["film", "low-rank"] = "film"
    """FiLM as published, or LORPMAN's deltas, which need no activations in the network."""
    stages: tuple[str, ...] = ()
    """Where FiLM modulates features; those the network declares if none."""
    rank: int = Field(8, ge=1)
    """Of the deltas."""
    reference_rate: float = Field(0.005, gt=0)
    kernel_width: float = Field(0.01, gt=0)


def _single(network: nn.Module, num_tasks: int, shared: Shared, own: Group) -> Manifold:
    del own
    return Single(network, num_tasks, shared)


def _corners(network: nn.Module, num_tasks: int, shared: Shared, own: Group) -> Manifold:
    del own
    return Population(network, torch.eye(num_tasks), shared)


def _rotated(network: nn.Module, num_tasks: int, shared: Shared, own: RotogradSettings) -> Manifold:
    return Single(with_rotations(network, own.rotation_size), num_tasks, shared)


def _population(network: nn.Module, num_tasks: int, shared: Shared, own: Any) -> Manifold:
    return Population(network, rays(num_tasks, own.members), shared)


def _learned(network: nn.Module, num_tasks: int, shared: Shared, own: GmooarSettings) -> Manifold:
    inner: Manifold
    if own.conditioning == "film":
        inner = Film(network, num_tasks, own.stages or None)
    else:
        inner = LowRank(network, num_tasks, rank=own.rank, shared=shared)
    return Learned(inner, own.members)


def _gmooar(quality: Literal["uniform", "hypervolume"]) -> Callable[[GmooarSettings], Rule]:
    return lambda own: rules.GMOOAR(quality, own.reference_rate, own.kernel_width)


def _row(
    name: str,
    summary: str,
    settings: type[Group],
    rule: Callable[[Any], Rule],
    manifold: Callable[[nn.Module, int, Shared, Any], Manifold] = _single,
    kind: Literal["discrete", "single"] = "single",
) -> Method:
    return Method(name, summary, kind, settings, manifold, rule)


SINGLE: Sequence[Method] = (
    _row("stl", "one network per task, alone", Nothing, lambda own: Linear(), _corners),
    _row("ls", "the mean of the losses", Nothing, lambda own: Linear()),
    _row(
        "uw",
        "losses scaled by learned uncertainties (CVPR 2018)",
        UwSettings,
        lambda own: rules.UncertaintyWeighting(own.initial_scale),
    ),
    _row(
        "dwa",
        "more weight where a loss stopped falling (CVPR 2019)",
        DwaSettings,
        lambda own: rules.DynamicWeightAverage(own.temperature, own.period),
    ),
    _row(
        "rlw",
        "random weights in every step (TMLR 2022)",
        Nothing,
        lambda own: rules.RandomWeighting(),
    ),
    _row(
        "mgda",
        "the shortest combination of gradients (NeurIPS 2018)",
        MgdaSettings,
        lambda own: rules.MGDA(own.normalisation),
    ),
    _row(
        "mgda-ub",
        "mgda at the shared features: one pass for all tasks (NeurIPS 2018)",
        FeatureMgdaSettings,
        lambda own: rules.FeatureMGDA(own.normalisation),
    ),
    _row(
        "pcgrad",
        "gradients projected off those they conflict with (NeurIPS 2020)",
        PcgradSettings,
        lambda own: rules.PCGrad(own.reduction),
    ),
    _row(
        "imtl",
        "equal projections of gradients whose losses are scaled to one (ICLR 2021)",
        Nothing,
        lambda own: rules.IMTL(),
    ),
    _row(
        "imtl-l",
        "losses scaled to one (ICLR 2021)",
        Nothing,
        lambda own: rules.ImpartialLosses(),
    ),
    _row(
        "imtl-g",
        "equal projections of the gradients (ICLR 2021)",
        Nothing,
        lambda own: rules.IMTL(scale_losses=False),
    ),
    _row(
        "graddrop",
        "gradients of one sign per parameter, by chance (NeurIPS 2020)",
        GraddropSettings,
        lambda own: rules.GradDrop(own.let_through),
    ),
    _row(
        "cagrad",
        "near the mean gradient, best for the worst-off task (NeurIPS 2021)",
        CagradSettings,
        lambda own: rules.CAGrad(own.c, own.rescale),
    ),
    _row(
        "nash-mtl",
        "a bargain between tasks, indifferent to loss scales (ICML 2022)",
        NashSettings,
        lambda own: rules.NashMTL(own.update_every, own.max_norm),
    ),
    _row(
        "rotograd",
        "features rotated so that gradients align (ICLR 2022)",
        RotogradSettings,
        lambda own: rules.RotoGrad(own.rotation_rate, own.burn_in),
        _rotated,
    ),
    _row(
        "auto-lambda",
        "weights that lower the loss on other data (TMLR 2022)",
        AutoLambdaSettings,
        lambda own: rules.AutoLambda(own.initial_weight, own.weight_rate),
    ),
    _row(
        "upgrad",
        "gradients projected so that none conflicts, by torchjd (2024)",
        Nothing,
        lambda own: rules.TorchJD("UPGrad"),
    ),
    _row(
        "aligned-mtl",
        "gradients made orthogonal and equally long, by torchjd (CVPR 2023)",
        Nothing,
        lambda own: rules.TorchJD("AlignedMTL"),
    ),
)

DISCRETE: Sequence[Method] = (
    _row(
        "pmtl",
        "one network per cone of the loss space (NeurIPS 2019)",
        PmtlSettings,
        lambda own: rules.PMTL(own.cone_epochs),
        _population,
        "discrete",
    ),
    _row(
        "epo",
        "one network on each preference's ray (ICML 2020)",
        Members,
        lambda own: rules.Epo(),
        _population,
        "discrete",
    ),
    _row(
        "moo-svgd",
        "networks that descend and repel in loss space (NeurIPS 2021)",
        SvgdSettings,
        lambda own: rules.MOOSVGD(own.bandwidth),
        _population,
        "discrete",
    ),
    _row(
        "png",
        "networks that descend, then spread along the front (NeurIPS 2022)",
        PngSettings,
        lambda own: rules.PNG(own.descent, own.tolerance),
        _population,
        "discrete",
    ),
    _row(
        "gmooar-u",
        "learned preferences, spread evenly (NeurIPS 2022)",
        GmooarSettings,
        _gmooar("uniform"),
        _learned,
        "discrete",
    ),
    _row(
        "gmooar-hv",
        "learned preferences, for hypervolume (NeurIPS 2022)",
        GmooarSettings,
        _gmooar("hypervolume"),
        _learned,
        "discrete",
    ),
)
