"""``theta_0 + sum_i alpha_i B_i A_i`` for b preferences: ways to compute it, and which is cheapest.

All give the same numbers up to rounding:

- *simple*: a few differentiable operations. It works under every transform of PyTorch.
- *product*: ``(alpha_j B) A`` with the factors of all tasks side by side, one product for each
  preference. The work grows with b; nothing is stored between forward and backward.
- *pairs*: every ``B_i A_i`` once for all preferences, some rows at a time, mixed into the b
  weights while it is in the cache. The work does not grow with b, but the mixing is slower for
  each number than a matrix product.

The last two have gradients of their own: automatic ones would copy each weight several times.
"""

from typing import Any, Literal, TypeGuard, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lorpman._torch import is_transformed
from lorpman.errors import unknown

Way = Literal["auto", "simple", "product", "pairs"]

# To multiply and add one number while mixing takes as long as so many in a matrix product, where
# they stay in registers; measured on a CPU with 2 MB of cache per core.
_MIXING = 25
# Rows of B_i A_i held at once, and the most bytes that they may take.
_ROWS, _BYTES = 128, 2**25


def check_way(way: str) -> Way:
    """``way``, if it is one."""
    if not _is_way(way):
        raise unknown("merge", way, get_args(Way))
    return way


def _is_way(way: str) -> TypeGuard[Way]:
    return way in get_args(Way)


def merge(weight: Tensor, B: Tensor, A: Tensor, alphas: Tensor, way: Way = "auto") -> list[Tensor]:
    """``weight + sum_i alpha_i B_i A_i``, shaped like ``weight``, for every row of ``alphas``.

    ``B [rows, m, r]``, ``A [m, r, columns]``, ``alphas [b, m]``; ``rows * columns`` is the size
    of ``weight``.
    """
    if needs_plain_operations(alphas) or weight.is_complex():
        way = "simple"
    elif way == "auto":
        way = cheapest(len(alphas), B.shape[2])
    if way == "simple":
        return _simple(weight, B, A, alphas)
    return list((_Product if way == "product" else _Pairs).apply(weight, B, A, alphas))


def cheapest(b: int, rank: int) -> Literal["product", "pairs"]:
    """By counting, for each number of the weight and each task, what forward and backward take.

    A product takes ``b r`` multiplications forward and twice that backward. Pairs take ``r`` and
    twice that, and ``b`` slower ones for mixing forward and as many backward.

    >>> cheapest(b=2, rank=8), cheapest(b=3, rank=96)
    ('product', 'pairs')
    """
    product = 3 * b * rank
    pairs = 3 * rank + 2 * _MIXING * b
    return "pairs" if pairs < product else "product"


def needs_plain_operations(alphas: Tensor) -> bool:
    """Whether something watches that only differentiable operations satisfy."""
    device = alphas.device.type
    return (
        alphas.requires_grad
        or torch.compiler.is_compiling()
        or (torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device))
        or is_transformed()
    )


def _simple(weight: Tensor, B: Tensor, A: Tensor, alphas: Tensor) -> list[Tensor]:
    _, m, rank = B.shape
    scaled = (alphas[:, None, :, None] * B).reshape(-1, m * rank)
    deltas = (scaled @ A.reshape(m * rank, -1)).view(len(alphas), *weight.shape)
    return list((weight + deltas).unbind())


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, B: Tensor, A: Tensor, alphas: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(B, A, alphas)
        matrix = weight.reshape(len(B), -1)
        beside = A.flatten(0, 1)
        merged = [torch.addmm(matrix, _scaled(B, alpha), beside) for alpha in alphas]
        return tuple(value.view(weight.shape) for value in merged)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        B, A, alphas = ctx.saved_tensors
        wants_weight, wants_B, wants_A, _ = ctx.needs_input_grad
        beside = A.flatten(0, 1)
        to_B = torch.zeros_like(B) if wants_B else None
        to_A = torch.zeros_like(beside) if wants_A else None
        for alpha, gradient in zip(alphas, gradients, strict=True):
            g = gradient.reshape(len(B), -1)
            if to_B is not None:
                to_B.addcmul_((g @ beside.T).view(B.shape), alpha[:, None].expand_as(B))
            if to_A is not None:
                to_A.addmm_(_scaled(B, alpha).T, g)
        to_weight = sum_of(gradients) if wants_weight else None
        return to_weight, to_B, None if to_A is None else to_A.view(A.shape), None


class _Pairs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, B: Tensor, A: Tensor, alphas: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.save_for_backward(B, A, alphas)
        matrix, by_task = weight.reshape(len(B), -1), B.transpose(0, 1)
        merged = matrix.new_empty(len(alphas), *matrix.shape)
        for rows in _blocks(B, A):
            pairs = torch.bmm(by_task[:, rows], A).flatten(1)
            part = torch.addmm(matrix[rows].reshape(1, -1), alphas, pairs)
            merged[:, rows] = part.view_as(merged[:, rows])
        return tuple(value.view(weight.shape) for value in merged)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        B, A, alphas = ctx.saved_tensors
        wants_weight, wants_B, wants_A, _ = ctx.needs_input_grad
        by_task, columns = B.transpose(0, 1), A.shape[2]
        to_B = torch.empty_like(B) if wants_B else None
        to_A = torch.zeros_like(A) if wants_A else None
        matrices = [gradient.reshape(len(B), -1) for gradient in gradients]
        for rows in _blocks(B, A):
            g = torch.stack([matrix[rows].reshape(-1) for matrix in matrices])
            to_pairs = (alphas.T @ g).view(len(A), -1, columns)
            if to_B is not None:
                to_B[rows] = torch.bmm(to_pairs, A.transpose(1, 2)).transpose(0, 1)
            if to_A is not None:
                to_A.baddbmm_(by_task[:, rows].transpose(1, 2), to_pairs)
        return sum_of(gradients) if wants_weight else None, to_B, to_A, None


def _scaled(B: Tensor, alpha: Tensor) -> Tensor:
    return (B * alpha[:, None]).flatten(1)


def sum_of(gradients: tuple[Tensor, ...]) -> Tensor:
    """Their sum, with one pass over memory for each but the first; never in place of one."""
    first, *others = gradients
    total = first + others[0] if others else first.clone()
    for gradient in others[1:]:
        total += gradient
    return total


def _blocks(B: Tensor, A: Tensor) -> list[slice]:
    """Rows to be computed together."""
    row = A.shape[0] * A.shape[2] * A.element_size()
    size = max(1, min(_ROWS, _BYTES // row))
    return [slice(start, start + size) for start in range(0, len(B), size)]
