"""Is alpha obeyed? Whether more weight on a task gives it a better score."""

from typing import NamedTuple

from torch import Tensor


class Order(NamedTuple):
    """How a front's scores follow its preferences."""

    correlations: tuple[float, ...]
    """Spearman's rank correlation between weight and (oriented) score, by task; 0 for a task
    whose score no preference changes."""
    violations: int
    """Pairs of points, over all tasks, of which the one with more weight scores worse."""
    pairs: int
    """Pairs with different weights, over all tasks."""

    @property
    def correlation(self) -> float:
        """The mean over the tasks; 1 if every task follows its weight."""
        return sum(self.correlations) / len(self.correlations)


def order(alphas: Tensor, gains: Tensor) -> Order:
    """How well scores follow preferences.

    Args:
        alphas: The preferences, ``[n, m]``.
        gains: What each reaches, turned so that bigger is better, ``[n, m]``.

    >>> from torch import tensor
    >>> alphas = tensor([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    >>> order(alphas, tensor([[0.1, 0.9], [0.2, 0.8], [0.3, 0.85]]))
    Order(correlations=(1.0, 0.5), violations=1, pairs=6)
    """
    # Ordered pairs: of two points with different weights, exactly one counts.
    more = alphas[:, None] > alphas[None, :]
    worse = gains[:, None] < gains[None, :]
    correlations = [_spearman(a, g) for a, g in zip(alphas.T, gains.T, strict=True)]
    return Order(tuple(correlations), int((more & worse).sum()), int(more.sum()))


def _spearman(first: Tensor, second: Tensor) -> float:
    """The correlation of ranks, rounded so that a perfect one is 1.0; 0 if one is constant."""
    a, b = (ranks - ranks.mean() for ranks in (_ranks(first), _ranks(second)))
    length = (a.square().sum() * b.square().sum()).sqrt().item()
    return round((a @ b).item() / length, 12) if length else 0.0


def _ranks(values: Tensor) -> Tensor:
    """Ranks ``[n]``; equal values share the mean of theirs."""
    below = (values[:, None] > values[None, :]).sum(1)
    equal = (values[:, None] == values[None, :]).sum(1)
    return below + (equal - 1).double() / 2
