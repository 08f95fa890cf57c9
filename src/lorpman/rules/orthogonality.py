"""Orthogonal regularisation: the tasks' low-rank deltas should not overlap (Eq. 6 of the paper)."""

import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank
from lorpman.rules.objective import Term


class Orthogonality(Term):
    """Orthogonal regularisation of the low-rank deltas (Eq. 6 of the paper).

    ``R_o = 1/L sum_l sum_{i != j} cos(B_i A_i, B_j A_j)^2`` over the L adapted matrices.

    Args:
        subset: Above this many tasks, a fresh random subset of so many is used in every step.

    Raises:
        UsageError: If ``subset`` is below 2.
    """

    depends_on = "the model"

    def __init__(self, subset: int = 3) -> None:
        super().__init__()
        if subset < 2:
            raise UsageError(f"subset must be at least 2 tasks, got {subset}")
        self.subset = subset

    def forward(self, alphas: Tensor, losses: Tensor, model: Manifold) -> Tensor:
        """The mean over adapted matrices of :func:`orthogonality`, ``[]``.

        Raises:
            UsageError: If ``model`` is no :class:`~lorpman.manifold.low_rank.LowRank`.
        """
        del alphas, losses
        if not isinstance(model, LowRank):
            raise UsageError(
                f"Orthogonality applies to a LowRank manifold, found {type(model).__name__}; "
                "leave the term out"
            )
        tasks = None
        if model.num_tasks > self.subset:
            # Otherwise the work would grow with the square of the number of tasks.
            tasks = torch.randperm(model.num_tasks)[: self.subset]
        terms = [orthogonality(delta.gram(tasks)) for delta in model.low_rank_deltas().values()]
        return torch.stack(terms).mean()


def orthogonality(gram: Tensor) -> Tensor:
    """Sum of squared cosines between different deltas.

    Args:
        gram: The inner products of t deltas, ``[t, t]``.

    Returns:
        A scalar ``[]``; 0 if the deltas are orthogonal, or zero.

    >>> orthogonality(torch.eye(3)), orthogonality(torch.zeros(3, 3))
    (tensor(0.), tensor(0.))
    """
    squared_norms = gram.diagonal()
    product = squared_norms[:, None] * squared_norms[None, :]
    # B starts at zero, where a cosine is 0/0; no square root, whose gradient there is infinite.
    tiny = torch.finfo(gram.dtype).tiny
    cosines = gram.square() / product.clamp_min(tiny)
    # The diagonal is taken from the same quotients, so that it cancels whatever was clamped.
    return cosines.sum() - cosines.diagonal().sum()
