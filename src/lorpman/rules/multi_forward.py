"""Multi-forward regularisation: more weight on a task must not give it more loss."""

import math

import torch
from torch import Tensor

from lorpman.manifold.base import Manifold
from lorpman.rules.objective import Term


class MultiForward(Term):
    """Multi-forward regularisation: order the losses of a task as its weights ask.

    ``R_p = sum_i log mean_{(a, a') in E_i} exp([f_i(a') - f_i(a)]_+)`` with
    ``E_i = {(a, a'): a_i < a'_i}``: the preference with *more* weight on a task must not have
    the larger loss.

    Args:
        as_printed: The form in the paper's appendix, whose bracket stands the other way round
            and so punishes the right order.
        chain: Compare only neighbours in the order of ``alpha_i``, as PaMaL's code does, instead
            of all pairs.
    """

    def __init__(self, as_printed: bool = False, chain: bool = False) -> None:
        super().__init__()
        self.as_printed = as_printed
        self.chain = chain

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """How far the losses ``[b, m]`` are from the order of the weights, ``[]``."""
        del model
        return multi_forward(alphas, losses, self.as_printed, self.chain)

    def extra_repr(self) -> str:
        """What stands between the brackets when the term is printed."""
        options = [name for name in ("as_printed", "chain") if getattr(self, name)]
        return ", ".join(f"{name}=True" for name in options)


def multi_forward(
    alphas: Tensor, losses: Tensor, as_printed: bool = False, chain: bool = False
) -> Tensor:
    """The regulariser of :class:`MultiForward`.

    Args:
        alphas: The preferences, ``[b, m]``.
        losses: The losses at each of them, ``[b, m]``.
        as_printed: See :class:`MultiForward`.
        chain: See :class:`MultiForward`.

    Returns:
        A scalar ``[]``; 0 where every task's losses are in order.

    >>> alphas, losses = torch.tensor([[0.2], [0.8]]), torch.tensor([[0.3], [0.7]])
    >>> f"{multi_forward(alphas, losses):.2f}"  # more weight and more loss: wrong
    '0.40'
    >>> f"{multi_forward(alphas, losses.flip(0)):.2f}"
    '0.00'
    """
    if chain:
        order = alphas.argsort(0)
        alphas, losses = alphas.gather(0, order), losses.gather(0, order)
        # Equal weights make no edge: neither preference asks for the smaller loss.
        edges = alphas[:-1] < alphas[1:]
        excess = losses[1:] - losses[:-1]
    else:
        edges = alphas[:, None] < alphas[None, :]
        excess = losses[None, :] - losses[:, None]
        edges, excess = edges.flatten(0, 1), excess.flatten(0, 1)
    # Clamped, so that pairs in the right order are left alone instead of being driven apart.
    punished = (-excess if as_printed else excess).clamp_min(0)
    # A task without an edge (one preference, or ties) counts as one whose every edge is in order:
    # the logarithm of an empty mean would be -inf, and its gradient nan.
    without = ~edges.any(0)
    exponents = torch.where(without, 0.0, punished.masked_fill(~edges, -math.inf))
    counts = torch.where(without, len(edges), edges.sum(0))
    # In a chain, one preference has no neighbour: zero, with a graph to go back through.
    return (exponents.logsumexp(0) - counts.log()).sum() if len(edges) else losses.sum() * 0
