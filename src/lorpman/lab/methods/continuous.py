"""The methods that give a network for every preference: their settings, and one row each.

To add one, put its manifold into ``lorpman/manifold`` or its rule into ``lorpman/rules``, and a
row into :data:`CONTINUOUS`.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from torch import nn

from lorpman.lab.methods.method import MakeManifold, Method, SharedPrefixes
from lorpman.lab.settings import SettingsGroup
from lorpman.manifold.base import Manifold
from lorpman.manifold.convex import Convex
from lorpman.manifold.cosmos import Cosmos
from lorpman.manifold.film import Film
from lorpman.manifold.hypernetwork import ChunkedHyper, Hyper
from lorpman.manifold.low_rank import LowRank
from lorpman.preference import Angles
from lorpman.rules.base import Rule
from lorpman.rules.chebyshev import Chebyshev, SmoothChebyshev
from lorpman.rules.cosine import Cosine
from lorpman.rules.epo import Epo
from lorpman.rules.hypervolume_ascent import HypervolumeAscent
from lorpman.rules.multi_forward import MultiForward
from lorpman.rules.objective import Linear, Term
from lorpman.rules.orthogonality import Orthogonality
from lorpman.rules.pamal import Balance, Balanced


class ScalarisedSettings(SettingsGroup):
    """For methods that work with any scalar objective."""

    scalarisation: Literal["linear", "chebyshev", "smooth-chebyshev"] = "linear"
    """Linear as published; the others reach concave parts of a front too."""
    smoothing: float = Field(0.1, gt=0)
    """Of smooth-chebyshev."""


_SCALARISATIONS: dict[str, Callable[[ScalarisedSettings], Term]] = {
    "linear": lambda settings: Linear(),
    "chebyshev": lambda settings: Chebyshev(),
    "smooth-chebyshev": lambda settings: SmoothChebyshev(settings.smoothing),
}


def _scalarisation(settings: ScalarisedSettings) -> Term:
    return _SCALARISATIONS[settings.scalarisation](settings)


class LowRankSettings(ScalarisedSettings):
    """LORPMAN's settings, named as in the paper."""

    rank: Annotated[int, Field(ge=1)] | Literal["auto"] = 8
    budget: int | None = Field(None, ge=1)
    """With rank auto: how many parameters the low-rank matrices may have; default: as many as
    with rank 8."""
    scale: float = 1.0
    lambda_p: float = Field(0.0, ge=0)
    """The weight of the multi-forward term."""
    lambda_o: float = Field(1.0, ge=0)
    """The weight of the orthogonality term."""
    as_printed: bool = False
    """Use the multi-forward formula as the paper prints it; see MultiForward."""
    frozen: bool = False
    """Leave the network as it came, for fine-tuning: only low-rank matrices and heads are trained,
    and they can be exported as adapters."""
    batched: bool = False
    """With frozen: run a batch once for all preferences of a step, repeated for each; faster where
    a batch is small."""


def _low_rank(
    network: nn.Module, num_tasks: int, shared: SharedPrefixes, settings: LowRankSettings
) -> Manifold:
    return LowRank(
        network,
        num_tasks,
        rank=settings.rank,
        scale=settings.scale,
        shared=shared,
        budget=settings.budget,
        frozen=settings.frozen,
        batched=settings.batched,
    )


def _lorpman_rule(settings: LowRankSettings) -> Rule:
    multi_forward = MultiForward(as_printed=settings.as_printed)
    # Terms of weight zero stay: a sum does not compute them, and the formula reads as in the paper.
    return (
        _scalarisation(settings)
        + settings.lambda_p * multi_forward
        + settings.lambda_o * Orthogonality()
    )


class ConvexSettings(SettingsGroup):
    """PaMaL's settings."""

    lambda_p: float = Field(0.0, ge=0)
    """The weight of the multi-forward term."""
    as_printed: bool = False
    """Use the multi-forward formula as printed, which is also what PaMaL's code does."""
    chain: bool = True
    """Compare neighbouring preferences only, as PaMaL's code does."""
    guard: bool = True
    """Leave the regulariser out where it exceeds the losses, as PaMaL's code does."""
    balance: Balance = "none"


def _pamal_rule(settings: ConvexSettings) -> Rule:
    multi_forward = MultiForward(as_printed=settings.as_printed, chain=settings.chain)
    # None where its weight is zero: the guard compares its value with the losses in every step.
    regulariser = settings.lambda_p * multi_forward if settings.lambda_p else None
    return Balanced(settings.balance, regulariser, settings.guard)


class CosmosSettings(SettingsGroup):
    """COSMOS's settings."""

    lambda_c: float = Field(1.0, ge=0)
    """The weight of the cosine term."""
    inverted: bool = False
    """Align losses with the opposite of the preference; published is the preference itself,
    which turns the front round when lambda_c is large."""


class FilmSettings(SettingsGroup):
    """FiLM's settings."""

    stages: tuple[str, ...] = ()
    """Modules after which features are modulated; those the network declares if none."""


class HyperSettings(SettingsGroup):
    """PHN-EPO's settings, and part of PHN-LS's."""

    hidden: int = Field(100, ge=1)
    """The width of the hypernetwork."""


class ScalarisedHyperSettings(HyperSettings, ScalarisedSettings):
    """PHN-LS's settings: it is a hypernetwork with a scalarisation and nothing else."""


class HypervolumeSettings(SettingsGroup):
    """PHN-HVI's settings."""

    hidden: int = Field(100, ge=1)
    lambda_c: float = Field(5.0, ge=0)
    """The weight of the cosine term."""
    loss_reference: float = Field(2.0, gt=0)
    """The reference point of the hypervolume, the same loss for every task."""
    warmup_epochs: int = Field(1, ge=0)
    weight_dropout: float = Field(0.05, ge=0, lt=1)
    """The chance of every written weight to be dropped in a training step."""
    # Below pi / 4, where nothing would be left between the two ends.
    edge: float = Field(0.1, ge=0, lt=0.785)
    """Angle left out at both ends of the range of preferences."""


class ChunkedSettings(SettingsGroup):
    """Chunked PHN's settings, as released."""

    hidden: int = Field(100, ge=1)
    matrices: int = Field(11, ge=1)
    block: int = Field(10_000, ge=1)
    batch_statistics: bool = False


def _chunked_hyper(
    network: nn.Module, num_tasks: int, shared: SharedPrefixes, settings: ChunkedSettings
) -> Manifold:
    # A hypernetwork writes all weights, heads included.
    del shared
    return ChunkedHyper(
        network,
        num_tasks,
        settings.hidden,
        settings.matrices,
        settings.block,
        batch_statistics=settings.batch_statistics,
    )


def _continuous(
    name: str,
    summary: str,
    settings: type[SettingsGroup],
    manifold: MakeManifold,
    rule: Callable[[Any], Rule],
    **others: Any,
) -> Method:
    return Method(name, summary, "continuous", settings, manifold, rule, **others)


# These methods were published with one preference per batch, whatever the window that a preset
# has for all methods.
_ONE_PREFERENCE = {"window": 1}

CONTINUOUS: Sequence[Method] = (
    _continuous(
        "lorpman",
        "one main network plus a low-rank delta per task (ICML 2024)",
        LowRankSettings,
        _low_rank,
        _lorpman_rule,
    ),
    _continuous(
        "pamal",
        "one network per task, convexly combined (PaMaL, ICML 2023)",
        ConvexSettings,
        lambda network, m, shared, settings: Convex(network, m, shared=shared),
        _pamal_rule,
    ),
    _continuous(
        "cosmos",
        "one network with the preference among its inputs (COSMOS, ICDM 2021)",
        CosmosSettings,
        lambda network, m, shared, settings: Cosmos(network, m),
        lambda settings: Linear() + settings.lambda_c * Cosine(settings.inverted),
        defaults=_ONE_PREFERENCE,
    ),
    _continuous(
        "film",
        "one network whose features are scaled and shifted (FiLM, as in YOTO)",
        FilmSettings,
        lambda network, m, shared, settings: Film(network, m, settings.stages or None),
        lambda settings: Linear(),
        defaults=_ONE_PREFERENCE,
    ),
    _continuous(
        "phn",
        "a hypernetwork, linear scalarisation (PHN-LS, ICLR 2021)",
        ScalarisedHyperSettings,
        lambda network, m, shared, settings: Hyper(network, m, settings.hidden),
        _scalarisation,
        defaults=_ONE_PREFERENCE,
    ),
    _continuous(
        "phn-epo",
        "a hypernetwork, weights from exact Pareto search (PHN-EPO, ICLR 2021)",
        HyperSettings,
        lambda network, m, shared, settings: Hyper(network, m, settings.hidden),
        lambda settings: Epo(),
        defaults=_ONE_PREFERENCE,
    ),
    _continuous(
        "phn-hvi",
        "a hypernetwork, hypervolume of 16 preferences at once (PHN-HVI, AAAI 2023)",
        HypervolumeSettings,
        lambda network, m, shared, settings: Hyper(
            network, m, settings.hidden, dropout=settings.weight_dropout
        ),
        lambda settings: HypervolumeAscent(
            settings.loss_reference, settings.lambda_c, settings.warmup_epochs
        ),
        sampler=lambda settings: Angles(settings.edge),
        defaults={"window": 16},
    ),
    _continuous(
        "chunked-phn",
        "a hypernetwork that writes weights in chunks (chunked PHN)",
        ChunkedSettings,
        _chunked_hyper,
        lambda settings: Linear(),
        defaults=_ONE_PREFERENCE,
    ),
)
"""The rows, in the order in which ``lorpman methods`` lists them."""
