"""Objectives: rules that are one scalar, made of terms that add and scale.

Every other term has a file of its own; a new one needs nothing but ``forward``.

>>> from lorpman import Linear, MultiForward, Orthogonality
>>> Linear() + 5.0 * MultiForward() + 1.0 * Orthogonality()
Linear() + 5.0 * MultiForward() + 1.0 * Orthogonality()
"""

import math
from abc import abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError, check_kind
from lorpman.manifold.base import Manifold
from lorpman.rules.base import Rule, Step

DependsOn = Literal["each preference", "the model", "all preferences"]


class Term(Rule):
    """A scalar objective, or a part of one; terms are added with ``+`` and weighted with ``*``."""

    depends_on: DependsOn = "all preferences"
    """What the value is made of: a sum over preferences, each with its own losses; nothing but the
    model's parameters; or something that couples the losses at different preferences."""

    @abstractmethod
    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """The value of the term.

        Args:
            alphas: The preferences of a step, ``[b, m]``.
            losses: The losses at each of them, ``[b, m]``, with their graph.
            model: The manifold that is trained.

        Returns:
            A scalar ``[]``.
        """

    def __call__(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """The value of the term; see :meth:`forward`.

        Raises:
            UsageError: If there is not one loss for every weight of every preference.
        """
        for name, value in (("alphas", alphas), ("losses", losses)):
            check_kind(name, value, Tensor, "a tensor [b, m]")
        if alphas.ndim != 2 or alphas.shape != losses.shape or losses.is_complex():
            given = f"{list(alphas.shape)} and {list(losses.shape)} of {losses.dtype}"
            raise UsageError(f"alphas and losses must both be real and [b, m], got {given}")
        return super().__call__(alphas, losses, model)

    def backward(self, step: Step) -> None:
        """Back-propagate the value of the term, preference by preference where that is possible.

        Args:
            step: What is known of this training step.
        """
        parts = [(weight, term) for weight, term in _parts(self) if weight != 0]
        at_each = [part for part in parts if part[1].depends_on == "each preference"]
        once = [part for part in parts if part[1].depends_on == "the model"]
        separable = at_each and len(at_each) + len(once) == len(parts)
        networks = None
        if separable and step.losses_of is not None:
            networks = step.model.one_by_one(step.alphas)
        if networks is None:
            step.backward(self(step.alphas, step.losses, step.model))
            return
        step.backward_one_by_one(
            networks,
            lambda alpha, losses: _weighted_sum(at_each, alpha, losses, step.model),
            # Such terms look at no losses, of which only the last preference's are there.
            (lambda: _weighted_sum(once, step.alphas, step.alphas, step.model)) if once else None,
        )

    def __add__(self, other: "Term") -> "Sum":
        if not isinstance(other, Term):
            return NotImplemented
        return Sum([*_parts(self), *_parts(other)])

    def __radd__(self, other: object) -> "Term":
        """So that ``sum(terms)`` works, which starts from 0."""
        return self if other == 0 else NotImplemented

    def __mul__(self, weight: float) -> "Sum":
        if not isinstance(weight, int | float):
            return NotImplemented
        if not math.isfinite(weight):
            raise UsageError(f"the weight of a term must be finite, got {weight}")
        return Sum([(weight * inner, term) for inner, term in _parts(self)])

    __rmul__ = __mul__

    def __repr__(self) -> str:
        # nn.Module's own has a line per submodule; an objective should read as a formula.
        return f"{type(self).__name__}({self.extra_repr()})"


class Sum(Term):
    """A weighted sum of terms; made by ``+`` and ``*``.

    Args:
        parts: Pairs of a weight and a term.
    """

    def __init__(self, parts: list[tuple[float, Term]]) -> None:
        super().__init__()
        self.weights = [weight for weight, _ in parts]
        self.terms = nn.ModuleList(term for _, term in parts)

    def prepare(self, model: Manifold) -> None:
        """Prepare every term."""
        for _, term in _parts(self):
            term.prepare(model)

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """``sum_k weight_k term_k``."""
        return _weighted_sum(_parts(self), alphas, losses, model)

    def __repr__(self) -> str:
        pairs = zip(self.weights, self.terms, strict=True)
        return " + ".join(
            f"{w} * {t!r}" if w != 1 or i else f"{t!r}" for i, (w, t) in enumerate(pairs)
        )


def _parts(term: Term) -> list[tuple[float, Term]]:
    """The weights and terms of a sum, so that sums of sums stay flat."""
    if isinstance(term, Sum):
        inner = [t for t in term.terms if isinstance(t, Term)]
        return list(zip(term.weights, inner, strict=True))
    return [(1.0, term)]


def _weighted_sum(
    parts: list[tuple[float, Term]], alphas: Tensor, losses: Tensor, model: Manifold
) -> Tensor:
    """``sum_k weight_k term_k``."""
    # A term with weight zero is not evaluated: it may not even apply to the manifold.
    values = [weight * term(alphas, losses, model) for weight, term in parts if weight != 0]
    # Times 0, so that there is a graph to go back through.
    return torch.stack(values).sum() if values else losses.sum() * 0


class Linear(Term):
    """Linear scalarisation, ``sum_ji alpha_ji losses_ji``."""

    depends_on = "each preference"

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """The weighted sum of all losses ``[b, m]``, ``[]``."""
        del model
        return (alphas * losses).sum()
