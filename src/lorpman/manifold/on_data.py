"""A linear layer that reads the mini-batch itself: what all preferences share is computed once.

Every preference of a step sees the same data ``x``, so the first layer of a network of rows needs
``x W_0^T`` and ``x A^T`` once, and for each preference no more than the narrow product
``(alpha_j x A^T) B^T``. The same holds for their gradients. Whether a layer reads the data shows
only when the network runs. So its weight is merged late: when the layer meets anything else than
the data, or when somebody asks for the weight.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from lorpman._torch import changes, insides_replaced, storage_id, tree_leaves
from lorpman.manifold.base import LateWeight
from lorpman.manifold.merge import needs_plain_operations, sum_of


class LayerOnData:
    """A linear layer at every row of ``alphas [b, m]``, in networks that run on ``x``, once.

    ``merge`` gives the weights themselves; shapes as in :func:`lorpman.manifold.merge.merge`.
    """

    def __init__(
        self,
        x: Any,
        weight: Tensor,
        B: Tensor,
        A: Tensor,
        alphas: Tensor,
        merge: Callable[[], Sequence[Tensor]],
    ) -> None:
        self.weight, self.factors, self.alphas = weight, (B, A), alphas
        self.merge = merge
        self.merged: Sequence[Tensor] | None = None
        self.shown: set[int] = set()
        # The network may switch gradients off for a part of itself.
        self.with_gradients = torch.is_grad_enabled()
        self.memories = {storage_id(leaf) for leaf in tree_leaves(x) if _may_be_data(leaf)}
        self.fingerprint: tuple[object, ...] = ()
        self.bias: Tensor | None = None
        self.outputs: dict[int, Tensor] = {}

    def weights(self) -> list[LateWeight]:
        """The layer's weight for every preference."""
        return [_LinearWeight(self, index) for index in range(len(self.alphas))]

    def weight_at(self, index: int) -> Tensor:
        if self.merged is None:
            with torch.set_grad_enabled(self.with_gradients), _all_bits(self.weight.device):
                self.merged = self.merge()
        # Whoever sees it may change it, and then means the layer to use it.
        self.shown.add(index)
        return self.merged[index]

    def output_at(self, index: int, x: Tensor, bias: Tensor | None) -> Tensor | None:
        """The layer's output, once for each preference; None where the weight is needed."""
        if index in self.shown or not self._applies(x):
            return None
        if not self.fingerprint:
            self.fingerprint, self.bias = _fingerprint(x), bias
            outputs = _LinearOnData.apply(x, self.weight, bias, *self.factors, self.alphas)
            self.outputs = dict(enumerate(outputs))
        if self.fingerprint != _fingerprint(x) or self.bias is not bias:
            return None
        # Given away only once: the network may change it in place.
        return self.outputs.pop(index, None)

    def _applies(self, x: Tensor) -> bool:
        if needs_plain_operations(self.alphas) or torch.is_grad_enabled() != self.with_gradients:
            return False
        if not (_may_be_data(x) and x.ndim == 2 and x.dtype == self.weight.dtype):
            return False
        return storage_id(x) in self.memories and self._is_less_work(len(x))

    def _is_less_work(self, samples: int) -> bool:
        """By counting multiplications of the forward pass; backward, both take twice as many."""
        (rows, columns), b = self.weight.shape, len(self.alphas)
        inner = self.factors[1].shape[:2].numel()
        merged = b * (inner * rows * columns + samples * rows * columns)
        return samples * (rows * columns + inner * columns + b * inner * rows) < merged


class _LinearWeight(LateWeight):
    """The weight of one linear layer at one preference."""

    def __init__(self, layer: LayerOnData, index: int) -> None:
        self.layer, self.index = layer, index

    @contextmanager
    def standing_in(self, module: nn.Module) -> Iterator[None]:
        parameters = _Parameters(module, self)

        def forward(x: Tensor) -> Tensor:
            bias = parameters.before.get("bias")
            if not parameters.replaced:
                output = self.layer.output_at(self.index, x, bias)
                if output is not None:
                    return output
            weight = parameters["weight"]
            assert weight is not None
            return F.linear(x, weight, parameters["bias"])

        with insides_replaced(module, parameters, forward):
            yield


class _Parameters(dict[str, nn.Parameter | Tensor | None]):
    """A layer's parameters, of which the weight is merged when somebody asks for it."""

    def __init__(self, module: nn.Module, late: _LinearWeight) -> None:
        self.before = dict(module.named_parameters(recurse=False))
        super().__init__({"weight": None, "bias": None, **self.before})
        self.late = late
        self.replaced = False

    def __getitem__(self, key: str) -> Tensor | None:
        if key == "weight" and not self.replaced:
            return self.late.layer.weight_at(self.late.index)
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: Tensor | None) -> None:
        self.replaced = True
        super().__setitem__(key, value)

    def get(self, key: str, default: Any = None) -> Any:
        # Not the dictionary's own, which would not ask for the weight.
        return self[key] if key in self else default  # noqa: SIM401

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def values(self) -> Any:
        return [self[key] for key in self]


def _all_bits(device: torch.device) -> AbstractContextManager[Any]:
    """As it was when the step began, whatever the network has switched on since."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def _may_be_data(value: object) -> bool:
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.requires_grad


def _fingerprint(value: Tensor) -> tuple[object, ...]:
    """The same if nothing about a tensor, or in it, has changed."""
    return storage_id(value), value.storage_offset(), value.shape, value.stride(), changes(value)


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
        shared, outer = F.linear(x, weight, bias), B.flatten(1).T
        return tuple(torch.addmm(shared, inner * scale, outer) for scale in scales)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, inner, B, A, scales = ctx.saved_tensors
        _, wants_weight, wants_bias, *_ = ctx.needs_input_grad
        total, outer = sum_of(gradients), B.flatten(1)
        to_B, to_inner = torch.zeros_like(outer), torch.zeros_like(inner)
        for scale, gradient in zip(scales, gradients, strict=True):
            to_B.addmm_(gradient.T, inner * scale)
            to_inner.addcmul_(gradient @ outer, scale.expand_as(inner))
        return (
            None,
            total.T @ x if wants_weight else None,
            total.sum(0) if wants_bias else None,
            to_B.view_as(B),
            (to_inner.T @ x).view_as(A),
            None,
        )
