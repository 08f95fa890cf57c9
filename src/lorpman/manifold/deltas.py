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
    factors ``[B_1 ... B_m]`` and ``[A_1; ...; A_m]`` are views. With ``watched``, it can note how
    much each direction matters to the loss, and drop some of them.
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
        self.B = nn.Parameter(weight.new_zeros(rows, num_tasks, rank))
        self.A = nn.Parameter(weight.new_empty(num_tasks, rank, columns))
        for task in self.A:
            nn.init.kaiming_uniform_(task, a=math.sqrt(5))
        self.register_buffer("importance", weight.new_zeros(num_tasks, rank) if watched else None)
        self.register_load_state_dict_pre_hook(_take_stored_rank)

    @property
    def rank(self) -> int:
        return self.A.shape[1]

    @property
    def cost(self) -> int:
        """The parameters of one direction, for all tasks."""
        rows, m, _ = self.B.shape
        return m * (rows + self.A.shape[2])

    @torch.no_grad()
    def note(self, to_weight: Tensor | None, scale: float) -> None:
        """Add what the loss would change, to first order, if a direction went: into the weight,
        with the share that it has at equal preferences, or away if the weight stays still."""
        if self.importance is None or self.B.grad is None:
            return
        change = self.B.grad
        if to_weight is not None:
            rows, m, _ = self.B.shape
            there = to_weight.reshape(rows, -1) @ self.A.flatten(0, 1).T
            change = change - there.view_as(self.B) * (scale / m)
        moved = (self.B * change).sum(0).abs()
        # Losses of half precision are scaled until their gradients overflow, now and then.
        self.importance += torch.where(moved.isfinite().all(), moved, 0)

    @torch.no_grad()
    def keep(self, rank: int) -> dict[nn.Parameter, Cut]:
        """Drop all but the ``rank`` directions of every task that mattered most; look afresh."""
        assert self.importance is not None
        cuts: dict[nn.Parameter, Cut] = {}
        if rank < self.rank:
            kept = self.importance.topk(rank).indices.sort().values
            tasks = torch.arange(len(kept), device=kept.device)[:, None]
            cuts = {
                self.B: Cut(
                    self.B.shape,
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
        """Make room for factors of another rank, which are zero at first."""
        rows, m, _ = self.B.shape
        self.replace(self.B.new_zeros(rows, m, rank), self.A.new_zeros(m, rank, self.A.shape[2]))
        self.importance = self.B.new_zeros(m, rank)

    def replace(self, B: Tensor, A: Tensor) -> None:
        """Other factors under the same names, and the same parameters for an optimiser."""
        self.B.data, self.A.data = B.contiguous(), A.contiguous()
        self.B.grad = self.A.grad = None

    def merge(self, weight: Tensor, alphas: Tensor, way: Way) -> Sequence[Tensor]:
        """``weight + sum_i alpha_i B_i A_i`` for every row of ``alphas [b, m]``."""
        if weight.shape != self.shape or not (weight.is_floating_point() or weight.is_complex()):
            raise UsageError(
                f"a weight kept as {weight.dtype} {list(weight.shape)} cannot be merged, expected "
                f"numbers {list(self.shape)}; use model(x, alpha) or model.at(alpha) instead"
            )
        merged = merge(weight.to(self.B.dtype), self.B, self.A, alphas.to(self.B), way)
        return [value.to(weight.dtype) for value in merged]

    def merge_late(self, x: Any, weight: Tensor, alphas: Tensor) -> Sequence[LateWeight]:
        """The same for a linear layer of networks that are run on ``x``, when it is needed."""
        alphas = alphas.to(self.B)
        whole = partial(merge, weight, self.B, self.A, alphas)
        return InputLayer(x, weight, self.B, self.A, alphas, whole).weights()

    def gram(self, tasks: Tensor | None = None) -> Tensor:
        """Inner products ``<B_i A_i, B_j A_j>`` of the chosen tasks, ``[t, t]``.

        ``= sum((B_i^T B_j) * (A_i A_j^T))``: exact, and costs r^2 (d + k) instead of r d k.
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
    """Before weights are loaded: a watched delta takes the rank of the stored ones."""
    del rest
    assert isinstance(delta, LowRankDelta)
    stored = state_dict.get(prefix + "A")
    if delta.importance is not None and stored is not None and stored.ndim == 3:
        delta.resize(stored.shape[1])


class FullDelta(nn.Module):
    """Full-size deltas of a norm layer's affine vector, one per task, ``[m, *shape]``."""

    def __init__(self, weight: Tensor, num_tasks: int) -> None:
        super().__init__()
        self.delta = nn.Parameter(weight.new_zeros(num_tasks, *weight.shape))

    def merge(self, weight: Tensor, alphas: Tensor, way: Way) -> Sequence[Tensor]:
        """``weight + sum_i alpha_i delta_i`` for every row of ``alphas [b, m]``."""
        del way
        return (weight + torch.tensordot(alphas.to(self.delta), self.delta, 1)).unbind()

    def dense(self) -> Tensor:
        """The deltas, ``[m, *shape]``."""
        return self.delta


def make_delta(
    name: str, owner: nn.Module, parameter: Tensor, num_tasks: int, rank: int, watched: bool
) -> LowRankDelta | FullDelta | None:
    """Untrained deltas of a parameter; None for what all tasks share, such as a bias."""
    if isinstance(owner, _NORMS) and parameter.is_floating_point():
        return FullDelta(parameter.detach(), num_tasks)
    if not is_matrix(name, owner, parameter):
        return None
    rows, inner = matrix_of(owner, parameter, rank)
    return LowRankDelta(parameter.detach(), rows, num_tasks, inner, watched)


def make_frozen_delta(
    name: str, owner: nn.Module, parameter: Tensor, num_tasks: int, rank: int, watched: bool
) -> LowRankDelta | None:
    """The same for a parameter that stays as it came: matrices alone get deltas.

    Their factors are trained in single precision where the weight has less, or is no weight but a
    code of it.
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
    """Whether a parameter gets low-rank deltas."""
    bias = name.rpartition(".")[2].startswith("bias")
    plain = parameter.is_floating_point() and not isinstance(owner, _NORMS)
    return plain and parameter.ndim >= 2 and not bias


def is_coded(owner: nn.Module) -> bool:
    """Whether a linear layer keeps something else than its weight, such as 4-bit codes of it."""
    if not isinstance(owner, nn.Linear):
        return False
    expected = (owner.out_features, owner.in_features)
    return not owner.weight.is_floating_point() or owner.weight.shape != expected


def matrix_of(owner: nn.Module, weight: Tensor, rank: int) -> tuple[int, int]:
    """Rows of the matrix that ``weight`` is seen as, and the inner size of its factors."""
    kernel, rows = 1, weight.numel() // weight.shape[-1]
    if isinstance(owner, CONVOLUTIONS):
        kernel = owner.kernel_size[0]
        rows = owner.out_channels * kernel
    return rows, min(rank * kernel, rows, weight.numel() // rows)
