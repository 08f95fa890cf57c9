"""Which parameters get which kind of deltas; those of norm layers are full vectors."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lorpman._torch import CONVOLUTIONS, NORMS_WITH_STATISTICS
from lorpman.manifold.low_rank_delta import LowRankDelta
from lorpman.manifold.merge import Way

_NORMS = (*NORMS_WITH_STATISTICS, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


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
