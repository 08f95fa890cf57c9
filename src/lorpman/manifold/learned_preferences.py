"""A finite set of preferences over any manifold, placed by training instead of by hand."""

from typing import Any

import torch
from torch import Tensor, nn

from lorpman.errors import check_kind, whole_number
from lorpman.manifold.base import Manifold
from lorpman.preference import Sampler, dirichlet


class Learned(Manifold):
    """``inner`` seen at ``count`` reference vectors that a rule moves while it trains.

    The references are preferences, ``[count, m]``, and belong to the manifold's state: they are
    where its front is shown. Any other preference is answered too, by ``inner``.

    Args:
        inner: The manifold that holds the weights; it must be differentiable in alpha, as every
            continuous one is. It is not copied.
        count: How many reference vectors there are.

    Raises:
        UsageError: If there is no reference vector.

    >>> from lorpman.manifold.convex import Convex
    >>> Learned(Convex(nn.Linear(6, 4), num_tasks=2), count=5).preferences().shape
    torch.Size([5, 2])
    """

    references: Tensor

    def __init__(self, inner: Manifold, count: int) -> None:
        check_kind("inner", inner, Manifold, "a manifold")
        super().__init__(inner.num_tasks)
        whole_number("count", count, why=" reference vector")
        self.inner = inner
        # Random, and so distinct: coincident references would never be pushed apart.
        self.register_buffer("references", dirichlet(inner.num_tasks, count))

    def forward(self, x: Any, alpha: Tensor) -> Any:
        return self.inner(x, alpha)

    def solution(self, alpha: Tensor) -> nn.Module:
        return self.inner.solution(alpha)

    def preferences(self) -> Tensor:
        # A copy: the references move in place, and a front must keep what it was scored at.
        return self.references.detach().clone()

    def sampler(self, concentration: float) -> Sampler:
        del concentration

        # A function and not the references of now: a rule moves them after every step.
        def current(num_tasks: int, count: int, generator: torch.Generator | None) -> Tensor:
            del num_tasks, count, generator
            return self.preferences()

        return current

    def shared_parameters(self, alpha: Tensor) -> list[nn.Parameter]:
        return self.inner.shared_parameters(alpha)

    def parameters_at(self, alpha: Tensor) -> list[nn.Parameter]:
        return self.inner.parameters_at(alpha)

    @property
    def innermost(self) -> Manifold:
        return self.inner.innermost

    @property
    def can_freeze(self) -> bool:
        return self.inner.can_freeze

    def freeze(self, heads: bool = False) -> None:
        self.inner.freeze(heads)
