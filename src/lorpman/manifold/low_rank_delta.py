"""The low-rank deltas of one weight, one for every task."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.manifold.base import Cut
from lorpman.manifold.input_layer import InputLayer
from lorpman.manifold.merge import Way, merge
from lorpman.manifold.parameter_manifold import LateWeight


class LowRankDelta(nn.Module):
    """The deltas ``B_i A_i`` of one weight, i = 1..m, with the weight seen as ``rows x columns``.

    ``B [rows, m, rank]`` and ``A [m, rank, columns]`` are laid out so that the concatenated
    factors ``[B_1 ... B_m]`` and ``[A_1; ...; A_m]`` are views.

    Args:
        weight: The weight, of any shape; only its shape, type and device matter.
        rows: Rows of the matrix that it is seen as; they divide its size.
        num_tasks: The number m of tasks.
        rank: The inner size of every ``B_i A_i``.
        watched: Whether to measure how much each direction matters to the loss, so that some can
            be dropped.
    """

    importance: Tensor | None
    """``[m, rank]``: what the loss would change without each direction, summed since the last
    look; None if not watched."""

    def __init__(
        self, weight: Tensor, rows: int, num_tasks: int, rank: int, watched: bool = False
    ) -> None:
        super().__init__()
        self.shape = weight.shape
        columns = weight.numel() // rows
        # One factor starts at zero, as in LoRA: the network is unchanged at first. Not both: their
        # gradients would be zero for ever.
        self.B = nn.Parameter(weight.new_zeros(rows, num_tasks, rank))
        self.A = nn.Parameter(weight.new_empty(num_tasks, rank, columns))
        for task in self.A:
            # The start of nn.Linear's weight, uniform within 1 / sqrt(columns).
            nn.init.kaiming_uniform_(task, a=math.sqrt(5))
        self.register_buffer("importance", weight.new_zeros(num_tasks, rank) if watched else None)
        self.register_load_state_dict_pre_hook(_take_stored_rank)

    @property
    def rank(self) -> int:
        """The present inner size, which :meth:`keep` and :meth:`resize` change."""
        return self.A.shape[1]

    @property
    def cost(self) -> int:
        """The parameters of one direction, for all tasks."""
        rows, m, _ = self.B.shape
        return m * (rows + self.A.shape[2])

    @torch.no_grad()
    def note(self, to_weight: Tensor | None, scale: float) -> None:
        """Add to ``importance`` how much the loss of this step would change without a direction.

        That is to first order, from the gradients that the step has left. A direction that goes is
        folded into the main weight with the share that it has at equal preferences, or is lost if
        the main weight is frozen.

        Args:
            to_weight: The gradient of the main weight, in its shape; None if it is frozen.
            scale: The manifold's scale of all deltas.
        """
        if self.importance is None or self.B.grad is None:
            return
        # To take out b a changes the loss by -<b, gradient of b>: the product with a is already
        # in the gradient of b.
        change = self.B.grad
        if to_weight is not None:
            # To put scale / m b a into the main weight gives a part of that back.
            rows, m, _ = self.B.shape
            there = to_weight.reshape(rows, -1) @ self.A.flatten(0, 1).T
            change = change - there.view_as(self.B) * (scale / m)
        moved = (self.B * change).sum(0).abs()
        # Losses of half precision are scaled until their gradients overflow, now and then.
        self.importance += torch.where(moved.isfinite().all(), moved, 0)

    @torch.no_grad()
    def keep(self, rank: int) -> dict[nn.Parameter, Cut]:
        """Drop all but the directions of every task that mattered most, and measure anew.

        Args:
            rank: How many are kept of every task; nothing is dropped if there are no more.

        Returns:
            How both factors were cut, for what an optimiser knows of them.
        """
        assert self.importance is not None
        cuts: dict[nn.Parameter, Cut] = {}
        if rank < self.rank:
            # Sorted by place, not by importance: the kept columns stay in their order.
            kept = self.importance.topk(rank).indices.sort().values
            tasks = torch.arange(len(kept), device=kept.device)[:, None]
            cuts = {
                self.B: Cut(
                    self.B.shape,
                    # Two index tensors around a slice put the indexed dimensions first.
                    lambda value: (
                        value.transpose(0, 1)[tasks, :, kept].permute(2, 0, 1).contiguous()
                    ),
                ),
                self.A: Cut(self.A.shape, lambda value: value[tasks, kept]),
            }
            self.replace(cuts[self.B].cut(self.B), cuts[self.A].cut(self.A))
        self.importance = self.B.new_zeros(self.importance.shape[0], rank)
        return cuts

    def total(self) -> Tensor:
        """``sum_i B_i A_i``, in the weight's shape."""
        return (self.B.flatten(1) @ self.A.flatten(0, 1)).view(self.shape)

    def resize(self, rank: int) -> None:
        """Make room for factors of another rank, which are zero at first.

        Args:
            rank: The new inner size.
        """
        rows, m, _ = self.B.shape
        self.replace(self.B.new_zeros(rows, m, rank), self.A.new_zeros(m, rank, self.A.shape[2]))
        self.importance = self.B.new_zeros(m, rank)

    def replace(self, B: Tensor, A: Tensor) -> None:
        """Put other factors into the same parameters, which an optimiser and its groups hold.

        Args:
            B: The left factors ``[rows, m, r]``.
            A: The right factors ``[m, r, columns]``.
        """
        self.B.data, self.A.data = B.contiguous(), A.contiguous()
        # They have the old shape, and an optimiser would fail on them.
        self.B.grad = self.A.grad = None

    def merge(self, weight: Tensor, alphas: Tensor, way: Way) -> Sequence[Tensor]:
        """``weight + sum_i alpha_i B_i A_i`` for every preference.

        Args:
            weight: The main weight.
            alphas: The preferences ``[b, m]``, times the manifold's scale.
            way: How to compute it (see :mod:`lorpman.manifold.merge`).

        Returns:
            b weights in the shape and precision of ``weight``.

        Raises:
            UsageError: If ``weight`` is no weight but a code of it.
        """
        if weight.shape != self.shape or not (weight.is_floating_point() or weight.is_complex()):
            raise UsageError(
                f"a weight kept as {weight.dtype} {list(weight.shape)} cannot be merged, expected "
                f"numbers {list(self.shape)}; use model(x, alpha) or model.at(alpha) instead"
            )
        # The factors may have more precision than the weight: rounded once, at the end.
        merged = merge(weight.to(self.B.dtype), self.B, self.A, alphas.to(self.B), way)
        return [value.to(weight.dtype) for value in merged]

    def merge_late(self, x: Any, weight: Tensor, alphas: Tensor) -> Sequence[LateWeight]:
        """The same for a linear layer, computed only if the layer needs the weight itself.

        Args:
            x: What the networks are run on.
            weight: The main weight ``[rows, columns]``.
            alphas: The preferences ``[b, m]``, times the manifold's scale.

        Returns:
            b weights; see :mod:`lorpman.manifold.input_layer`.
        """
        alphas = alphas.to(self.B)
        whole = partial(merge, weight, self.B, self.A, alphas)
        return InputLayer(x, weight, self.B, self.A, alphas, whole).weights()

    def gram(self, tasks: Tensor | None = None) -> Tensor:
        """Inner products ``<B_i A_i, B_j A_j>`` of the chosen tasks.

        ``= sum((B_i^T B_j) * (A_i A_j^T))``: exact, and costs r^2 (d + k) instead of r d k.

        Args:
            tasks: Their numbers ``[t]``; None for all.

        Returns:
            ``[t, t]``.
        """
        B = self.B if tasks is None else self.B[:, tasks]
        A = self.A if tasks is None else self.A[tasks]
        t, rank, _ = A.shape
        b = B.reshape(len(B), -1)
        a = A.reshape(t * rank, -1)
        return ((b.T @ b) * (a @ a.T)).view(t, rank, t, rank).sum((1, 3))

    def dense(self) -> Tensor:
        """Every ``B_i A_i``, ``[m, *shape]``; for looking at, not for training."""
        return torch.einsum("dmr,mrk->mdk", self.B, self.A).reshape(-1, *self.shape)


def _take_stored_rank(
    delta: nn.Module, state_dict: dict[str, Any], prefix: str, *rest: object
) -> None:
    """Before weights are loaded: a watched delta takes the rank of the stored ones.

    A run whose ranks were found in training is opened with a manifold that has yet to find them.
    """
    del rest
    assert isinstance(delta, LowRankDelta)
    stored = state_dict.get(prefix + "A")
    if delta.importance is not None and stored is not None and stored.ndim == 3:
        # load_state_dict compares shapes only after this hook, and would refuse another rank.
        delta.resize(stored.shape[1])
