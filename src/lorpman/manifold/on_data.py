"""A linear layer that reads the mini-batch itself: what all preferences share is computed once.

Every preference of a step sees the same data ``x``, so the first layer of a network of rows needs
``x W_0^T`` and ``x A^T`` once, and for each preference no more than the narrow product
``(alpha_j x A^T) B^T``. The same holds for their gradients. Whether a layer reads the data shows
only when the network runs. So a :class:`LazyWeight` stands in the layer until then; it looks at
what the layer is applied to, and turns into the merged weight wherever this does not apply.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from lorpman.manifold.merge import sum_of


def lazy_weights(
    weight: Tensor,
    B: Tensor,
    A: Tensor,
    alphas: Tensor,
    merge: Callable[[], Sequence[Tensor]],
    x: Any,
) -> list[Tensor]:
    """A weight for every row of ``alphas [b, m]``, for networks that are run on ``x``.

    ``merge`` gives the weights themselves; shapes as in :func:`lorpman.manifold.merge.merge`.
    """
    layer = _Layer(weight, B, A, alphas, merge, x)
    return [LazyWeight.of(layer, index) for index in range(len(alphas))]


class _Layer:
    """What the lazy weights of one layer know together while a step runs."""

    def __init__(
        self,
        weight: Tensor,
        B: Tensor,
        A: Tensor,
        alphas: Tensor,
        merge: Callable[[], Sequence[Tensor]],
        x: Any,
    ) -> None:
        self.weight, self.factors, self.alphas = weight, (B, A), alphas
        self.merge = merge
        self.merged: Sequence[Tensor] | None = None
        self.memories = {_memory(leaf) for leaf in pytree.tree_leaves(x) if _may_be_data(leaf)}
        self.seen: tuple[object, ...] = ()
        self.outputs: dict[int, Tensor] = {}

    def weight_at(self, index: int) -> Tensor:
        if self.merged is None:
            self.merged = self.merge()
        return self.merged[index]

    def output_at(self, index: int, x: Tensor, bias: Tensor | None) -> Tensor | None:
        """The layer's output, once for each preference; None where the weight is needed."""
        seen = (*_place(x), id(bias)) if self._applies(x) else ()
        if seen and not self.seen:
            self.seen = seen
            outputs = _LinearOnData.apply(x, self.weight, bias, *self.factors, self.alphas)
            self.outputs = dict(enumerate(outputs))
        # Given away only once: the network may change it in place.
        return self.outputs.pop(index, None) if seen == self.seen else None

    def _applies(self, x: Tensor) -> bool:
        if not (_may_be_data(x) and x.ndim == 2 and x.dtype == self.weight.dtype):
            return False
        return _memory(x) in self.memories and self._is_less_work(len(x))

    def _is_less_work(self, samples: int) -> bool:
        """By counting multiplications of the forward pass; backward, both take twice as many."""
        (rows, columns), b = self.weight.shape, len(self.alphas)
        inner = self.factors[1].shape[:2].numel()
        merged = b * (inner * rows * columns + samples * rows * columns)
        return samples * (rows * columns + inner * columns + b * inner * rows) < merged


def _may_be_data(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.requires_grad


def _memory(value: Tensor) -> int:
    """The same for views of one tensor. Not an address, which a tensor without data has not."""
    return value.untyped_storage()._cdata


def _place(value: Tensor) -> tuple[object, ...]:
    """The same if nothing about a tensor, or in it, has changed."""
    version = 0 if value.is_inference() else value._version
    return _memory(value), value.storage_offset(), value.shape, value.stride(), version


class LazyWeight(Tensor):
    """The weight at one preference, which is computed only if something other than the linear
    layer on the data needs it."""

    layer: _Layer
    place: int

    @classmethod
    def of(cls, layer: _Layer, place: int) -> "LazyWeight":
        weight = layer.weight.detach().as_subclass(cls)
        weight.layer, weight.place = layer, place
        return weight

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        del types
        if func is F.linear and not kwargs and len(args) == 3 and isinstance(args[1], cls):
            x, weight, bias = args
            if not isinstance(x, cls):
                output = weight.layer.output_at(weight.place, x, bias)
                if output is not None:
                    return output
        args, kwargs = pytree.tree_map_only(
            cls, lambda weight: weight.layer.weight_at(weight.place), (tuple(args), kwargs or {})
        )
        return func(*args, **kwargs)


class _LinearOnData(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        B: Tensor,
        A: Tensor,
        alphas: Tensor,
    ) -> tuple[Tensor, ...]:
        inner = x @ A.flatten(0, 1).T
        scales = alphas.repeat_interleave(A.shape[1], 1)
        ctx.save_for_backward(x, inner, B, A, scales)
        same, beside = F.linear(x, weight, bias), B.flatten(1).T
        return tuple(torch.addmm(same, inner * scale, beside) for scale in scales)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, inner, B, A, scales = ctx.saved_tensors
        _, wants_weight, wants_bias, *_ = ctx.needs_input_grad
        total, beside = sum_of(gradients), B.flatten(1)
        to_B, to_inner = torch.zeros_like(beside), torch.zeros_like(inner)
        for scale, gradient in zip(scales, gradients, strict=True):
            to_B.addmm_(gradient.T, inner * scale)
            to_inner.addcmul_(gradient @ beside, scale.expand_as(inner))
        return (
            None,
            total.T @ x if wants_weight else None,
            total.sum(0) if wants_bias else None,
            to_B.view_as(B),
            (to_inner.T @ x).view_as(A),
            None,
        )
