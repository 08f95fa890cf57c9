"""Ranks that differ by layer: which directions of all deltas earn their parameters.

A direction is one column ``b`` of ``B_i`` with its row ``a`` of ``A_i``. As in AdaLoRA (Zhang et
al., ICLR 2023), it matters as much as the loss would change without it, to first order, summed
over the steps of an epoch; and the budget falls from more than is wanted to what is wanted over
the first half of training. Unlike there, a direction does not vanish: it goes into the main
weights as ``scale / m * b a``, its share at equal preferences, so only what it does differently
for different preferences counts. All tasks have the same rank in a layer, so that one product
still merges all of them; directions compete by what they bring *per parameter*; and what goes is
gone from the factors, so later steps are cheaper.
"""

import math
from collections.abc import Mapping

from torch import Tensor

from lorpman.manifold.low_rank_delta import LowRankDelta

START = 2.0
"""How many times the budget training begins with."""
_SETTLED = 0.5
"""The part of training after which the ranks stay as they are."""


def budget_at(epoch: int, epochs: int, budget: int) -> int:
    """How many parameters the factors may have in an epoch.

    Args:
        epoch: The epoch, counted from 0.
        epochs: How many there are in all.
        budget: What is wanted in the end.

    >>> [budget_at(epoch, 10, 1000) for epoch in (0, 1, 2, 5, 9)], budget_at(0, 1, 1000)
    ([2000, 1800, 1600, 1000, 1000], 1000)
    """
    # At the latest in the last epoch, however few there are: the result must keep the budget.
    settled = min(math.ceil(_SETTLED * epochs), epochs - 1)
    left = max(0.0, 1 - epoch / settled) if settled else 0.0
    return round(budget * (1 + (START - 1) * left))


def allocate(
    importance: Mapping[str, Tensor], costs: Mapping[str, int], budget: int
) -> dict[str, int]:
    """How many directions each layer keeps: those that bring most for each parameter.

    Args:
        importance: For each layer a value for each of its r directions, ``[r]``, in falling order.
        costs: For each layer the parameters of one direction.
        budget: The parameters that all together may have.

    Returns:
        The rank of each layer, at least 1.

    >>> from torch import tensor
    >>> allocate({"a": tensor([9.0, 4.0]), "b": tensor([8.0, 1.0])}, {"a": 10, "b": 5}, 25)
    {'a': 2, 'b': 1}
    """
    ranks = dict.fromkeys(importance, 1)
    left = budget - sum(costs.values())
    # The place breaks ties: where nothing was measured yet, all layers lose the same part of their
    # directions, instead of the first ones keeping all.
    offers = [
        (-value / costs[name], place / len(values), name)
        for name, values in importance.items()
        for place, value in enumerate(values.tolist()[1:], start=1)
    ]
    for _, _, name in sorted(offers):
        # Goes on after one that is too dear: a cheaper one may still fit.
        if costs[name] <= left:
            ranks[name] += 1
            left -= costs[name]
    return ranks


def ranks_within(deltas: Mapping[str, LowRankDelta], budget: int) -> dict[str, int]:
    """How many directions each layer keeps, by what was measured of them.

    Args:
        deltas: The deltas by parameter name, all of them watched.
        budget: The parameters that all together may have.

    Returns:
        The rank of each layer, at least 1.
    """
    importance = {}
    for name, delta in deltas.items():
        assert delta.importance is not None
        # Every task keeps its own best directions, so rank r brings what the r-th best of all
        # tasks bring together.
        importance[name] = delta.importance.sort(descending=True).values.sum(0)
    return allocate(importance, {name: delta.cost for name, delta in deltas.items()}, budget)
