"""The registry of methods: which manifold, which rule, which settings. One row each."""

from typing import Annotated, Literal

from pydantic import Field
from torch import nn

from lorpman.errors import unknown
from lorpman.lab.methods.finite_methods import DISCRETE, SINGLE
from lorpman.lab.methods.method import Method, Shared
from lorpman.lab.settings import Group
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


class Scalarised(Group):
    """For methods that work with any scalar objective."""

    scalarisation: Literal["linear", "chebyshev", "smooth-chebyshev"] = "linear"
    """Linear as published; the others reach concave parts of a front too."""
    smoothing: float = Field(0.1, gt=0)
    """Of smooth-chebyshev."""


def _scalarisation(own: Scalarised) -> Term:
    if own.scalarisation == "chebyshev":
        return Chebyshev()
    return Linear() if own.scalarisation == "linear" else SmoothChebyshev(own.smoothing)


class LowRankSettings(Scalarised):
    """LORPMAN's own settings, named as in the paper."""

    rank: Annotated[int, Field(ge=1)] | Literal["auto"] = 8
    budget: int | None = Field(None, ge=1)
    """With rank auto: how many parameters the low-rank matrices may have; default: as many as
    with rank 8."""
    scale: float = 1.0
    lambda_p: float = Field(0.0, ge=0)
    lambda_o: float = Field(1.0, ge=0)
    as_printed: bool = False
    """Use the multi-forward formula as the paper prints it; see MultiForward."""


def _low_rank(network: nn.Module, num_tasks: int, shared: Shared, own: LowRankSettings) -> Manifold:
    return LowRank(
        network, num_tasks, rank=own.rank, scale=own.scale, shared=shared, budget=own.budget
    )


def _lorpman_rule(own: LowRankSettings) -> Rule:
    forward = MultiForward(as_printed=own.as_printed)
    return _scalarisation(own) + own.lambda_p * forward + own.lambda_o * Orthogonality()


class ConvexSettings(Group):
    """PaMaL's own settings."""

    lambda_p: float = Field(0.0, ge=0)
    as_printed: bool = False
    """Use the multi-forward formula as printed, which is also what PaMaL's code does."""
    chain: bool = True
    """Compare neighbouring preferences only, as PaMaL's code does."""
    guard: bool = True
    """Leave the regulariser out where it exceeds the losses, as PaMaL's code does."""
    balance: Balance = "none"


def _pamal_rule(own: ConvexSettings) -> Rule:
    forward = MultiForward(as_printed=own.as_printed, chain=own.chain)
    regulariser = own.lambda_p * forward if own.lambda_p else None
    return Balanced(own.balance, regulariser, own.guard)


class CosmosSettings(Group):
    """COSMOS's own settings."""

    lambda_c: float = Field(1.0, ge=0)
    inverted: bool = False
    """Align losses with the opposite of the preference; published is the preference itself,
    which turns the front round when lambda_c is large."""


class FilmSettings(Group):
    """FiLM's own settings."""

    stages: tuple[str, ...] = ()
    """Modules after which features are modulated; those the network declares if none."""


class HyperSettings(Group):
    """PHN's own settings."""

    hidden: int = Field(100, ge=1)


class ScalarisedHyperSettings(HyperSettings, Scalarised):
    """PHN-LS's, which is a scalarisation and nothing else."""


class HypervolumeSettings(Group):
    """PHN-HVI's own settings."""

    hidden: int = Field(100, ge=1)
    lambda_c: float = Field(5.0, ge=0)
    loss_reference: float = Field(2.0, gt=0)
    warmup_epochs: int = Field(1, ge=0)
    weight_dropout: float = Field(0.05, ge=0, lt=1)
    edge: float = Field(0.1, ge=0, lt=0.785)
    """Angle left out at both ends of the range of preferences."""


class ChunkedSettings(Group):
    """Chunked PHN's own settings, as released."""

    hidden: int = Field(100, ge=1)
    matrices: int = Field(11, ge=1)
    block: int = Field(10_000, ge=1)
    batch_statistics: bool = False


METHODS = {
    method.name: method
    for method in (
        Method(
            name="lorpman",
            summary="one main network plus a low-rank delta per task (ICML 2024)",
            kind="continuous",
            settings=LowRankSettings,
            manifold=_low_rank,
            rule=_lorpman_rule,
        ),
        Method(
            name="pamal",
            summary="one network per task, convexly combined (PaMaL, ICML 2023)",
            kind="continuous",
            settings=ConvexSettings,
            manifold=lambda network, m, shared, own: Convex(network, m, shared=shared),
            rule=_pamal_rule,
        ),
        Method(
            name="cosmos",
            summary="one network with the preference among its inputs (COSMOS, ICDM 2021)",
            kind="continuous",
            settings=CosmosSettings,
            manifold=lambda network, m, shared, own: Cosmos(network, m),
            rule=lambda own: Linear() + own.lambda_c * Cosine(own.inverted),
            defaults={"window": 1},
        ),
        Method(
            name="film",
            summary="one network whose features are scaled and shifted (FiLM, as in YOTO)",
            kind="continuous",
            settings=FilmSettings,
            manifold=lambda network, m, shared, own: Film(network, m, own.stages or None),
            rule=lambda own: Linear(),
            defaults={"window": 1},
        ),
        Method(
            name="phn",
            summary="a hypernetwork, linear scalarisation (PHN-LS, ICLR 2021)",
            kind="continuous",
            settings=ScalarisedHyperSettings,
            manifold=lambda network, m, shared, own: Hyper(network, m, own.hidden),
            rule=_scalarisation,
            defaults={"window": 1},
        ),
        Method(
            name="phn-epo",
            summary="a hypernetwork, weights from exact Pareto search (PHN-EPO, ICLR 2021)",
            kind="continuous",
            settings=HyperSettings,
            manifold=lambda network, m, shared, own: Hyper(network, m, own.hidden),
            rule=lambda own: Epo(),
            defaults={"window": 1},
        ),
        Method(
            name="phn-hvi",
            summary="a hypernetwork, hypervolume of 16 preferences at once (PHN-HVI, AAAI 2023)",
            kind="continuous",
            settings=HypervolumeSettings,
            manifold=lambda network, m, shared, own: Hyper(
                network, m, own.hidden, dropout=own.weight_dropout
            ),
            rule=lambda own: HypervolumeAscent(own.loss_reference, own.lambda_c, own.warmup_epochs),
            sampler=lambda own: Angles(own.edge),
            defaults={"window": 16},
        ),
        Method(
            name="chunked-phn",
            summary="a hypernetwork that writes weights in chunks (chunked PHN)",
            kind="continuous",
            settings=ChunkedSettings,
            manifold=lambda network, m, shared, own: ChunkedHyper(
                network,
                m,
                own.hidden,
                own.matrices,
                own.block,
                batch_statistics=own.batch_statistics,
            ),
            rule=lambda own: Linear(),
            defaults={"window": 1},
        ),
        *DISCRETE,
        *SINGLE,
    )
}


def get_method(name: str) -> Method:
    """The row called ``name``."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
