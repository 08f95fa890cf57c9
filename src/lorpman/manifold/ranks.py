"""How large the factors of each layer are: one rank, ranks by prefix, or a budget for all."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import SupportsIndex

from torch import nn

from lorpman.errors import UsageError
from lorpman.manifold.automatic_ranks import START
from lorpman.manifold.deltas import is_matrix, matrix_of
from lorpman.manifold.network_parameters import below

DEFAULT_RANK = 8
Owned = tuple[str, nn.Module, nn.Parameter]
"""A parameter with its full name and the module that holds it."""


def rank_by_name(rank: object, adapted: Sequence[Owned]) -> Callable[[str], int]:
    """The rank that is asked for, for every parameter.

    Args:
        rank: A whole number, or a mapping from prefixes of names to such; the longest prefix of a
            name counts, and "" is a prefix of all.
        adapted: The parameters that get factors.

    Raises:
        UsageError: If a rank is no whole number, a prefix fits no parameter, or a parameter has no
            prefix.
    """
    if not isinstance(rank, Mapping):
        same = _whole("rank", rank)
        return lambda name: same
    ranks = {str(prefix): _whole(f"rank['{prefix}']", value) for prefix, value in rank.items()}
    names = [name for name, *_ in adapted]
    for prefix in ranks:
        if not any(below(name, prefix) for name in names):
            top = sorted({name.split(".")[0] for name in names})
            raise UsageError(
                f"rank prefix '{prefix}' matches no parameter; the network has {', '.join(top)}"
            )

    def rank_of(name: str) -> int:
        found = [prefix for prefix in ranks if below(name, prefix)]
        if not found:
            raise UsageError(
                f"rank has no prefix of '{name}', found {', '.join(ranks)}; add one for all "
                "others with the prefix ''"
            )
        return ranks[max(found, key=len)]

    return rank_of


def _whole(name: str, value: object, least: int = 1, why: str = "") -> int:
    """``value`` as a plain int, if it is a whole number of any kind but a truth value."""
    whole = None
    if not isinstance(value, bool) and isinstance(value, SupportsIndex):
        whole = operator.index(value)
    if whole is None or whole < least:
        raise UsageError(f"{name} must be a whole number of at least {least}{why}, got {value!r}")
    return whole


def _sizes(adapted: Sequence[Owned], num_tasks: int, rank: int) -> Iterator[tuple[int, int]]:
    """For every matrix: directions at one rank for all layers, and the parameters of each."""
    for name, owner, weight in adapted:
        if is_matrix(name, owner, weight):
            rows, inner = matrix_of(owner, weight, rank)
            yield inner, num_tasks * (rows + weight.numel() // rows)


def _size(adapted: Sequence[Owned], num_tasks: int, rank: int) -> int:
    """The parameters of all factors together with one rank for all layers."""
    return sum(inner * cost for inner, cost in _sizes(adapted, num_tasks, rank))


def check_budget(adapted: Sequence[Owned], num_tasks: int, budget: int | None) -> int:
    """The budget asked for, or that of rank 8, if every layer can have one direction.

    Args:
        adapted: The parameters that get factors.
        num_tasks: The number m of tasks.
        budget: The most parameters that all factors together may have; None for those of rank 8.

    Raises:
        UsageError: If the budget has no room for one direction in every layer.
    """
    if budget is None:
        return _size(adapted, num_tasks, DEFAULT_RANK)
    least = sum(cost for _, cost in _sizes(adapted, num_tasks, 1))
    return _whole("budget", budget, least, " parameters, one direction in every layer")


def first_rank(adapted: Sequence[Owned], num_tasks: int, budget: int) -> int:
    """The rank that training starts from: the smallest that fills the budget of its first epoch.

    The search ends where a larger rank adds nothing, since every matrix has its full rank.

    Args:
        adapted: The parameters that get factors.
        num_tasks: The number m of tasks.
        budget: The most parameters that all factors may have at the end of training.
    """
    rank, size = 1, _size(adapted, num_tasks, 1)
    while size < START * budget and (larger := _size(adapted, num_tasks, rank + 1)) > size:
        rank, size = rank + 1, larger
    return rank
