"""The deltas of one parameter, one for every task, and which parameters get which kind."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lorpman._torch import CONVOLUTIONS, NORMS_WITH_STATISTICS
from lorpman.errors import UsageError
from lorpman.manifold.base import Cut
from lorpman.manifold.input_layer import InputLayer
from lorpman.manifold.merge import Way, merge
from lorpman.manifold.parameter_manifold import LateWeight

_NORMS = (*NORMS_WITH_STATISTICS, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


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


class FullDelta(nn.Module):
    """Full-size deltas of a norm layer's affine vector, one per task.

    A vector has no low rank to speak of, and is small enough to have one delta per task.

    Args:
        weight: The vector; only its shape, type and device matter.
        num_tasks: The number m of tasks.
    """

    def __init__(self, weight: Tensor, num_tasks: int) -> None:
        super().__init__()
        # At zero, like the products B A: at first every preference gives the network as it came.
        self.delta = nn.Parameter(weight.new_zeros(num_tasks, *weight.shape))

    def merge(self, weight: Tensor, alphas: Tensor, way: Way) -> Sequence[Tensor]:
        """``weight + sum_i alpha_i delta_i`` for every preference.

        Args:
            weight: The main vector.
            alphas: The preferences ``[b, m]``, times the manifold's scale.
            way: Has no meaning for vectors; there so that all deltas are called alike.

        Returns:
            b vectors in the shape of ``weight``.
        """
        del way
        return (weight + torch.tensordot(alphas.to(self.delta), self.delta, 1)).unbind()

    def dense(self) -> Tensor:
        """The deltas, ``[m, *shape]``."""
        return self.delta


def make_delta(
    name: str, owner: nn.Module, parameter: Tensor, num_tasks: int, rank: int, watched: bool
) -> LowRankDelta | FullDelta | None:
    """Untrained deltas of a parameter, of the kind that it gets.

    Args:
        name: The parameter's full name in the network.
        owner: The module that holds it.
        parameter: The parameter itself.
        num_tasks: The number m of tasks.
        rank: The rank that the manifold was asked for.
        watched: Whether its directions are measured, for automatic ranks.

    Returns:
        The deltas, or None for what all tasks share, such as a bias.
    """
    if isinstance(owner, _NORMS) and parameter.is_floating_point():
        return FullDelta(parameter.detach(), num_tasks)
    if not is_matrix(name, owner, parameter):
        return None
    rows, inner = matrix_of(owner, parameter, rank)
    return LowRankDelta(parameter.detach(), rows, num_tasks, inner, watched)


def make_frozen_delta(
    name: str, owner: nn.Module, parameter: Tensor, num_tasks: int, rank: int, watched: bool
) -> LowRankDelta | None:
    """As :func:`make_delta`, for a parameter that stays as it came: matrices alone get deltas.

    Their factors are trained in single precision where the weight has less, or is no weight but a
    code of it.

    Args:
        name: As in :func:`make_delta`, like the others.
        owner: The module that holds the parameter.
        parameter: The parameter itself, or codes of it.
        num_tasks: The number m of tasks.
        rank: The rank that the manifold was asked for.
        watched: Whether its directions are measured, for automatic ranks.

    Returns:
        The deltas, or None for what is no matrix.
    """
    if is_coded(owner) and name.rpartition(".")[2] == "weight":
        assert isinstance(owner, nn.Linear)
        shape: tuple[int, ...] = (owner.out_features, owner.in_features)
    elif is_matrix(name, owner, parameter):
        shape = parameter.shape
    else:
        return None
    whole = parameter.is_floating_point() and parameter.element_size() >= 4
    dtype = parameter.dtype if whole else torch.float32
    # Like the weight in all that counts, without taking memory.
    parameter = torch.zeros((), dtype=dtype, device=parameter.device).expand(shape)
    rows, inner = matrix_of(owner, parameter, rank)
    return LowRankDelta(parameter.detach(), rows, num_tasks, inner, watched)


def is_matrix(name: str, owner: nn.Module, parameter: Tensor) -> bool:
    """Whether a parameter gets low-rank deltas.

    Args:
        name: Its full name in the network.
        owner: The module that holds it.
        parameter: The parameter itself.
    """
    # By name: attention has biases of more than one dimension (bias_k, bias_v).
    bias = name.rpartition(".")[2].startswith("bias")
    plain = parameter.is_floating_point() and not isinstance(owner, _NORMS)
    return plain and parameter.ndim >= 2 and not bias


def is_coded(owner: nn.Module) -> bool:
    """Whether a linear layer keeps something else than its weight, such as 4-bit codes of it.

    Args:
        owner: Any module.
    """
    if not isinstance(owner, nn.Linear):
        return False
    expected = (owner.out_features, owner.in_features)
    return not owner.weight.is_floating_point() or owner.weight.shape != expected


def matrix_of(owner: nn.Module, weight: Tensor, rank: int) -> tuple[int, int]:
    """Rows of the matrix that a weight is seen as, and the inner size of its factors.

    Args:
        owner: The module that holds it; convolutions are seen in a way of their own.
        weight: The weight, of two or more dimensions.
        rank: The rank that the manifold was asked for.

    Returns:
        Rows and inner size; the inner size is never more than the matrix has rows or columns.

    >>> matrix_of(nn.Conv2d(4, 6, 3), torch.empty(6, 4, 3, 3), rank=2)
    (18, 6)
    """
    # A weight of more dimensions than two, of some other layer, is split before its last one.
    kernel, rows = 1, weight.numel() // weight.shape[-1]
    if isinstance(owner, CONVOLUTIONS):
        # The layout of loralib, (out k) x (in k) with inner size rank k, gives the parameter counts
        # of the paper; out x (in k k) with inner size rank does not.
        kernel = owner.kernel_size[0]
        rows = owner.out_channels * kernel
    return rows, min(rank * kernel, rows, weight.numel() // rows)
