"""``theta_0 + sum_i alpha_i B_i A_i`` for b preferences: ways to compute it, and which is cheapest.

All give the same numbers up to rounding:

- *simple*: the factors of all tasks side by side, and one product for all preferences together.
- *product*: the same with one product for each preference, to which the weight is added on the
  way. The work grows with b; nothing is stored between forward and backward. That needs a gradient
  of its own: the automatic one keeps ``alpha_j B`` for every j, as fast, but a step of VGG-16 then
  takes 1.28 instead of 1.15 times the memory of plain passes (benchmark row vgg-memory, counted in
  tensors, at half width).
- *pairs*: every ``B_i A_i`` once for all preferences, some rows at a time, mixed into the b
  weights while it is in the cache. The work does not grow with b, but the mixing is slower for
  each number than a matrix product. A weight of 256 x 256 x 3 x 3 with 40 tasks, inner size 96 and
  b = 3 (ResNet-18 of CelebA) takes 231 ms so, forward and backward, and 474 ms by products.
"""

from typing import Any, Literal, TypeGuard, get_args

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lorpman._torch import is_transformed
from lorpman.errors import unknown

Way = Literal["auto", "simple", "product", "pairs"]

# One multiplication while mixing takes as long as this many in a matrix product, whose numbers stay
# in registers; measured on a CPU with 2 MB of cache per core.
_MIXING = 25
# How many rows of every B_i A_i exist at once, and how many bytes they may take at most: few enough
# to stay in the cache, and enough for an efficient product.
_ROWS, _BYTES = 128, 2**25


def check_way(way: str) -> Way:
    """``way``, checked to be one of the names.

    Args:
        way: "auto", "simple", "product" or "pairs".

    Raises:
        UsageError: If it is none of them.
    """
    if not _is_way(way):
        raise unknown("merge", way, get_args(Way))
    return way


def _is_way(way: str) -> TypeGuard[Way]:
    return way in get_args(Way)


def merge(weight: Tensor, B: Tensor, A: Tensor, alphas: Tensor, way: Way = "auto") -> list[Tensor]:
    """``weight + sum_i alpha_i B_i A_i`` for every row of ``alphas``.

    Args:
        weight: The main weight, of any shape with ``rows * columns`` numbers.
        B: The left factors of all tasks, ``[rows, m, r]``.
        A: The right factors, ``[m, r, columns]``.
        alphas: The preferences, ``[b, m]``.
        way: How to compute it; by default what takes the least work.

    Returns:
        b weights in the shape of ``weight``.
    """
    # The gradient of _Product is written for real numbers.
    if needs_plain_operations(alphas) or weight.is_complex():
        way = "simple"
    elif way == "auto":
        way = cheapest(len(alphas), B.shape[2])
    if way == "product":
        return list(_Product.apply(weight, B, A, alphas))
    return (_simple if way == "simple" else _pairs)(weight, B, A, alphas)


def cheapest(b: int, rank: int) -> Literal["product", "pairs"]:
    """The way that takes less work, counted for each number of the weight and each task.

    A product takes ``b r`` multiplications forward and twice that backward. Pairs take ``r`` and
    twice that, and ``b`` slower ones for mixing forward and as many backward.

    Args:
        b: The number of preferences.
        rank: The inner size r of one task's factors.

    >>> cheapest(b=2, rank=8), cheapest(b=3, rank=96)
    ('product', 'pairs')
    """
    product = 3 * b * rank
    pairs = 3 * rank + 2 * _MIXING * b
    return "pairs" if pairs < product else "product"


def needs_plain_operations(alphas: Tensor) -> bool:
    """Whether only few and plainly differentiable operations will do.

    The hand-written gradient of *product* has none for alpha, and no rule for ``vmap`` and other
    transforms of functions. A compiler does best with few operations. Autocast would round the
    weight itself to half precision where one operation both multiplies and adds it.

    Args:
        alphas: The preferences ``[b, m]``.
    """
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
        # Only what exists anyway: the scaled copies of B are made again in the backward pass.
        ctx.save_for_backward(B, A, alphas)
        matrix, right = weight.reshape(len(B), -1), A.flatten(0, 1)
        merged = [torch.addmm(matrix, _scaled(B, alpha), right) for alpha in alphas]
        return tuple(value.view(weight.shape) for value in merged)

    @staticmethod
    # It works in place and records nothing, so a second derivative must be refused.
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        B, A, alphas = ctx.saved_tensors
        wants_weight, wants_B, wants_A, _ = ctx.needs_input_grad
        right = A.flatten(0, 1)
        to_B = torch.zeros_like(B) if wants_B else None
        to_A = torch.zeros_like(right) if wants_A else None
        for alpha, gradient in zip(alphas, gradients, strict=True):
            g = gradient.reshape(len(B), -1)
            if to_B is not None:
                to_B.addcmul_((g @ right.T).view(B.shape), alpha[:, None].expand_as(B))
            if to_A is not None:
                to_A.addmm_(_scaled(B, alpha).T, g)
        to_weight = _sum_of(gradients) if wants_weight else None
        return to_weight, to_B, None if to_A is None else to_A.view(A.shape), None


def _scaled(B: Tensor, alpha: Tensor) -> Tensor:
    """``[alpha_1 B_1 ... alpha_m B_m]``, ``[rows, m r]``."""
    return (B * alpha[:, None]).flatten(1)


def _sum_of(gradients: tuple[Tensor, ...]) -> Tensor:
    """Their sum in a new tensor, since autograd may still use the gradients themselves.

    The first addition makes that tensor, which saves one pass over memory.
    """
    first, *others = gradients
    total = first + others[0] if others else first.clone()
    for gradient in others[1:]:
        total += gradient
    return total


def _pairs(weight: Tensor, B: Tensor, A: Tensor, alphas: Tensor) -> list[Tensor]:
    # Of one row in the B_i A_i of all tasks.
    bytes_of_a_row = A.shape[0] * A.shape[2] * A.element_size()
    size = max(1, min(_ROWS, _BYTES // bytes_of_a_row))
    blocks = []
    for rows, left in zip(weight.reshape(len(B), -1).split(size), B.split(size), strict=True):
        pairs = torch.bmm(left.transpose(0, 1), A).flatten(1)
        mixed = torch.addmm(rows.reshape(1, -1), alphas, pairs)
        blocks.append(mixed.view(len(alphas), *rows.shape))
    return list(torch.cat(blocks, 1).view(len(alphas), *weight.shape).unbind())
