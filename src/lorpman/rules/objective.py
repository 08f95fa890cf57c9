"""Objectives: rules that are one scalar, made of terms that add and scale.

>>> objective = Linear() + 5.0 * MultiForward() + 1.0 * Orthogonality()
>>> objective
Linear() + 5.0 * MultiForward() + 1.0 * Orthogonality()
"""

import math
from abc import abstractmethod

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank
from lorpman.rules.base import Rule, Step


class Term(Rule):
    """A scalar objective, or a part of one."""

    @abstractmethod
    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """``[b, m]``, ``[b, m]``, the manifold -> a scalar."""

    def backward(self, step: Step) -> None:
        step.backward(self(step.alphas, step.losses, step.model))

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
        return f"{type(self).__name__}({self.extra_repr()})"


class Sum(Term):
    """A weighted sum of terms; made by ``+`` and ``*``."""

    def __init__(self, parts: list[tuple[float, Term]]) -> None:
        super().__init__()
        self.weights = [weight for weight, _ in parts]
        self.terms = nn.ModuleList(term for _, term in parts)

    def prepare(self, model: Manifold) -> None:
        for _, term in _parts(self):
            term.prepare(model)

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        # A term with weight zero is not evaluated: it may not even apply to the manifold.
        values = [
            weight * term(alphas, losses, model)
            for weight, term in zip(self.weights, self.terms, strict=True)
            if weight != 0
        ]
        return torch.stack(values).sum() if values else losses.sum() * 0

    def __repr__(self) -> str:
        pairs = zip(self.weights, self.terms, strict=True)
        return " + ".join(
            f"{w} * {t!r}" if w != 1 or i else f"{t!r}" for i, (w, t) in enumerate(pairs)
        )


def _parts(term: Term) -> list[tuple[float, Term]]:
    if isinstance(term, Sum):
        inner = [t for t in term.terms if isinstance(t, Term)]
        return list(zip(term.weights, inner, strict=True))
    return [(1.0, term)]


class Linear(Term):
    """Linear scalarisation, ``sum_ji alpha_ji losses_ji``."""

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        del model
        return (alphas * losses).sum()


class _Distance(Term):
    """What the Chebyshev family shares: weighted distances from an ideal point."""

    ideal: Tensor

    def __init__(self, ideal: float | list[float] = 0.0) -> None:
        super().__init__()
        point = torch.as_tensor(ideal, dtype=torch.float32)
        if point.ndim > 1:
            raise UsageError(f"ideal must be one number, or one per task, got {ideal!r}")
        self.register_buffer("ideal", point)

    def _weighted(self, alphas: Tensor, losses: Tensor) -> Tensor:
        return alphas * (losses - self.ideal.to(losses))


class Chebyshev(_Distance):
    """Chebyshev scalarisation, ``sum_j max_i alpha_ji (losses_ji - ideal_i)``.

    Reaches every point of a front, concave parts included, which no linear weighting does.
    """

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        del model
        return self._weighted(alphas, losses).amax(1).sum()


class SmoothChebyshev(_Distance):
    """``sum_j mu log sum_i exp(alpha_ji (losses_ji - ideal_i) / mu)``: Chebyshev, differentiable.

    From Lin et al., "Smooth Tchebycheff Scalarization" (ICML 2024). Tends to Chebyshev as
    ``smoothing`` (mu) tends to zero, and exceeds it by at most ``mu log m``.
    """

    def __init__(self, smoothing: float = 0.1, ideal: float | list[float] = 0.0) -> None:
        super().__init__(ideal)
        if not smoothing > 0:
            raise UsageError(f"smoothing must be positive, got {smoothing}")
        self.smoothing = smoothing

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        del model
        weighted = self._weighted(alphas, losses)
        return self.smoothing * torch.logsumexp(weighted / self.smoothing, 1).sum()

    def extra_repr(self) -> str:
        return f"smoothing={self.smoothing}"


class MultiForward(Term):
    """Multi-forward regularisation: order the losses of a task as its weights ask.

    ``R_p = sum_i log mean_{(a, a') in E_i} exp([f_i(a') - f_i(a)]_+)`` with
    ``E_i = {(a, a'): a_i < a'_i}``: the preference with *more* weight on a task must not have
    the larger loss. The paper's appendix prints the bracket the other way round, which punishes
    the right order; ``as_printed=True`` gives that form. ``chain=True`` compares only neighbours
    in the order of ``alpha_i``, as PaMaL's code does, instead of all pairs.
    """

    def __init__(self, as_printed: bool = False, chain: bool = False) -> None:
        super().__init__()
        self.as_printed = as_printed
        self.chain = chain

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        del model
        return multi_forward(alphas, losses, self.as_printed, self.chain)

    def extra_repr(self) -> str:
        options = [name for name in ("as_printed", "chain") if getattr(self, name)]
        return ", ".join(f"{name}=True" for name in options)


def multi_forward(
    alphas: Tensor, losses: Tensor, as_printed: bool = False, chain: bool = False
) -> Tensor:
    """The regulariser of :class:`MultiForward`; ``[b, m]``, ``[b, m]`` to a scalar.

    >>> alphas, losses = torch.tensor([[0.2], [0.8]]), torch.tensor([[0.3], [0.7]])
    >>> f"{multi_forward(alphas, losses):.2f}"  # more weight and more loss: wrong
    '0.40'
    >>> f"{multi_forward(alphas, losses.flip(0)):.2f}"
    '0.00'
    """
    if chain:
        order = alphas.argsort(0)
        alphas, losses = alphas.gather(0, order), losses.gather(0, order)
        edges = alphas[:-1] < alphas[1:]
        excess = losses[1:] - losses[:-1]
    else:
        edges = alphas[:, None] < alphas[None, :]
        excess = losses[None, :] - losses[:, None]
        edges, excess = edges.flatten(0, 1), excess.flatten(0, 1)
    punished = (-excess if as_printed else excess).clamp_min(0)
    # A task without an edge (one preference, or ties) counts as one whose every edge is in order.
    without = ~edges.any(0)
    exponents = torch.where(without, 0.0, punished.masked_fill(~edges, -math.inf))
    counts = torch.where(without, len(edges), edges.sum(0))
    return (exponents.logsumexp(0) - counts.log()).sum() if len(edges) else losses.sum() * 0


class Cosine(Term):
    """``-sum_j cos(losses_j, alpha_j)``: COSMOS's term, which spreads the preferences.

    It draws the loss vector towards ``alpha`` itself, so more weight means *more* loss, against
    linear scalarisation; with a large weight it turns the front round. ``inverted=True`` draws
    it towards :func:`opposite` instead, where both agree.
    """

    def __init__(self, inverted: bool = False) -> None:
        super().__init__()
        self.inverted = inverted

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        del model
        return -cosines(losses, opposite(alphas) if self.inverted else alphas).sum()

    def extra_repr(self) -> str:
        return "inverted=True" if self.inverted else ""


def cosines(losses: Tensor, rays: Tensor) -> Tensor:
    """The cosine between each row of ``losses [b, m]`` and of ``rays [b, m]``, ``[b]``."""
    return nn.functional.cosine_similarity(losses, rays, dim=1)


def opposite(alphas: Tensor) -> Tensor:
    """The rays ``1 / alpha``, on the simplex: where the loss vector is if all weighted losses
    are equal. Of two tasks, the weights change places.

    >>> opposite(torch.tensor([[0.2, 0.8]]))
    tensor([[0.8000, 0.2000]])
    """
    # The limit keeps corners finite; a ray this close to an axis is that axis.
    inverse = 1 / alphas.clamp_min(1e-3)
    return inverse / inverse.sum(1, keepdim=True)


class Orthogonality(Term):
    """Orthogonal regularisation of the low-rank deltas (Eq. 6 of the paper).

    ``R_o = 1/L sum_l sum_{i != j} cos(B_i A_i, B_j A_j)^2`` over the L adapted matrices. Above
    ``subset`` tasks, a fresh random subset of that many tasks is used in every step.
    """

    def __init__(self, subset: int = 3) -> None:
        super().__init__()
        if subset < 2:
            raise UsageError(f"subset must be at least 2 tasks, got {subset}")
        self.subset = subset

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        del alphas, losses
        if not isinstance(model, LowRank):
            raise UsageError(
                f"Orthogonality applies to a LowRank manifold, found {type(model).__name__}; "
                "leave the term out"
            )
        tasks = None
        if model.num_tasks > self.subset:
            tasks = torch.randperm(model.num_tasks)[: self.subset]
        terms = [orthogonality(delta.gram(tasks)) for delta in model.low_rank_deltas().values()]
        return torch.stack(terms).mean()


def orthogonality(gram: Tensor) -> Tensor:
    """Sum of squared cosines between different deltas, from their Gram matrix ``[t, t]``.

    >>> orthogonality(torch.eye(3)), orthogonality(torch.zeros(3, 3))
    (tensor(0.), tensor(0.))
    """
    squared_norms = gram.diagonal()
    product = squared_norms[:, None] * squared_norms[None, :]
    # B starts at zero, where a cosine is 0/0; no square root, whose gradient there is infinite.
    tiny = torch.finfo(gram.dtype).tiny
    cosines = gram.square() / product.clamp_min(tiny)
    return cosines.sum() - cosines.diagonal().sum()
