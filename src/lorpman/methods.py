"""The registry of methods: which manifold, which rule, which settings. One row each."""

from pydantic import Field
from torch import nn

from lorpman.errors import unknown
from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank
from lorpman.method import Method, Shared
from lorpman.objective import Linear, MultiForward, Orthogonality
from lorpman.rule import Rule
from lorpman.rules.rows import DISCRETE, SINGLE
from lorpman.settings import Group


class LowRankSettings(Group):
    """LORPMAN's own settings, named as in the paper."""

    rank: int = Field(8, ge=1)
    scale: float = 1.0
    lambda_p: float = Field(0.0, ge=0)
    lambda_o: float = Field(1.0, ge=0)
    as_printed: bool = False
    """Use the multi-forward formula as the paper prints it; see MultiForward."""


def _low_rank(network: nn.Module, num_tasks: int, shared: Shared, own: LowRankSettings) -> Manifold:
    return LowRank(network, num_tasks, rank=own.rank, scale=own.scale, shared=shared)


def _lorpman_rule(own: LowRankSettings) -> Rule:
    forward = MultiForward(as_printed=own.as_printed)
    return Linear() + own.lambda_p * forward + own.lambda_o * Orthogonality()


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
        *DISCRETE,
        *SINGLE,
    )
}


def get_method(name: str) -> Method:
    """The row called ``name``."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
