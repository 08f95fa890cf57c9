"""A linear layer that reads the mini-batch itself: what all preferences share is computed once.

Every preference of a step sees the same data ``x``, so the first layer of a network of rows needs
``x W_0^T`` and ``x A^T`` once, and for each preference no more than the narrow product
``(alpha_j x A^T) B^T``. The same holds for their gradients. Whether a layer reads the data shows
only when the network runs. So its weight is merged late: when the layer meets anything else than
the data, or when somebody asks for the weight.

What it was worth while all preferences went forward before any went backward, as a step against b
plain ones in torch's own layout, on one thread (to be measured again): Census 1.02 with it and
1.35 without; LeNet, whose first layer is a convolution, 0.70 and 0.68; VGG-16 1.36 and 1.35.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lorpman._torch import (
    changes,
    insides_replaced,
    storage_id,
    tree_leaves,
)
from lorpman.manifold.merge import needs_plain_operations
from lorpman.manifold.parameter_manifold import LateWeight


class InputLayer:
    """A linear layer at several preferences, in networks that each run once on ``x``.

    Args:
        x: What the networks are run on.
        weight: The main weight of the layer, ``[rows, columns]``.
        B: The left factors of all tasks, ``[rows, m, r]``.
        A: The right factors, ``[m, r, columns]``.
        alphas: The preferences, ``[b, m]``.
        merge: Gives the b weights themselves, where they are needed after all.
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
        # By memory and not by object: a network may read a view of the data, x.flatten(1) perhaps.
        self.memories = {storage_id(leaf) for leaf in tree_leaves(x) if _may_be_data(leaf)}
        self.fingerprint: tuple[object, ...] = ()
        self.bias: Tensor | None = None
        self.outputs: dict[int, Tensor] = {}

    def weights(self) -> list[LateWeight]:
        """The layer's weight for every preference, b of them, to be put into the networks."""
        return [_InputWeight(self, index) for index in range(len(self.alphas))]

    def weight_at(self, index: int) -> Tensor:
        """The merged weight ``[rows, columns]`` at one of the preferences.

        Args:
            index: Which preference.
        """
        if self.merged is None:
            with torch.set_grad_enabled(self.with_gradients), _full_precision(self.weight.device):
                self.merged = self.merge()
        # Whoever has seen the weight may have changed it: then the layer must use what they see.
        self.shown.add(index)
        return self.merged[index]

    def output_at(self, index: int, x: Tensor, bias: Tensor | None) -> Tensor | None:
        """The layer's output at one of the preferences, or None where the weight is needed.

        Args:
            index: Which preference.
            x: What the layer is called with, of any shape.
            bias: The layer's bias as it is now.
        """
        if index in self.shown or not self._applies(x):
            return None
        if not self.fingerprint:
            # The first of the b networks computes what all of them share.
            self.fingerprint, self.bias = _fingerprint(x), bias
            outputs = _outputs(x, self.weight, bias, *self.factors, self.alphas)
            self.outputs = dict(enumerate(outputs))
        # Another part of the data, or the data changed meanwhile: what is shared does not hold for
        # it.
        if self.fingerprint != _fingerprint(x) or self.bias is not bias:
            return None
        # Given away only once: the network may change it in place.
        return self.outputs.pop(index, None)

    def _applies(self, x: Tensor) -> bool:
        # Under vmap and its like it cannot be told whether a tensor is the data.
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


class _InputWeight(LateWeight):
    """The weight of one linear layer at one preference."""

    def __init__(self, layer: InputLayer, index: int) -> None:
        self.layer, self.index = layer, index

    @cached_property
    def whole(self) -> Tensor:
        """The merged weight, the same tensor however often it is asked for."""
        return self.cut(self.layer.weight_at(self.index))

    @contextmanager
    def standing_in(self, module: nn.Module) -> Iterator[None]:
        parameters = _Parameters(module, self)

        def forward(x: Tensor) -> Tensor:
            bias = parameters.before.get("bias")
            # Somebody has set a weight inside the network, which then counts.
            if not parameters.replaced:
                output = self.layer.output_at(self.index, x, bias)
                if output is not None:
                    return self.cut(output)
            weight = parameters["weight"]
            assert weight is not None
            return F.linear(x, weight, parameters["bias"])

        with insides_replaced(module, parameters, forward):
            yield


class _Parameters(dict[str, nn.Parameter | Tensor | None]):
    """A layer's parameters, of which the weight is merged when somebody asks for it."""

    def __init__(self, module: nn.Module, late: _InputWeight) -> None:
        self.before = dict(module.named_parameters(recurse=False))
        super().__init__({"weight": None, "bias": None, **self.before})
        self.late = late
        self.replaced = False

    def __getitem__(self, key: str) -> Tensor | None:
        if key == "weight" and not self.replaced:
            return self.late.whole
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: Tensor | None) -> None:
        self.replaced = True
        super().__setitem__(key, value)

    def get(self, key: str, default: Any = None) -> Any:
        # Not the dictionary's own, which would not ask for the weight.
        return self[key] if key in self else default  # noqa: SIM401

    # The same for these two: torch reads parameters through them, in state_dict() for instance.
    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def values(self) -> Any:
        return [self[key] for key in self]


def _full_precision(device: torch.device) -> AbstractContextManager[Any]:
    """As when the step began: the network may have switched autocast on since."""
    if torch.amp.is_autocast_available(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def _may_be_data(value: object) -> bool:
    # Data has no gradients, activations do; and a sparse tensor has no storage to tell it by.
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.requires_grad


def _fingerprint(value: Tensor) -> tuple[object, ...]:
    """The same if nothing about a tensor, or in it, has changed."""
    return storage_id(value), value.storage_offset(), value.shape, value.stride(), changes(value)


def _outputs(
    x: Tensor, weight: Tensor, bias: Tensor | None, B: Tensor, A: Tensor, alphas: Tensor
) -> list[Tensor]:
    """``x (weight + sum_i alpha_i B_i A_i)^T + bias`` for every row of ``alphas``."""
    inner = x @ A.flatten(0, 1).T
    shared, left = F.linear(x, weight, bias), B.flatten(1).T
    scales = alphas.repeat_interleave(A.shape[1], 1)
    return [torch.addmm(shared, inner * scale, left) for scale in scales]
