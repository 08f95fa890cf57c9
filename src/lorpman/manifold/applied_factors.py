"""Factors on activations: ``y = W x + B (alpha * (A x))``, without a merged weight.

For a weight that stays still this takes less work than merging and nearly no memory, and the weight
may be of any kind that its layer can compute with. It also lets alpha differ between samples. What
is built for a preference is a network of its own over the same weights: nothing is put in and taken
out, so threads do not meet, and what runs a part of it again later finds the same alpha.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lorpman._torch import changes, parameter_dictionary, replace_insides
from lorpman.errors import UsageError
from lorpman.manifold.deltas import is_coded
from lorpman.manifold.low_rank_delta import LowRankDelta
from lorpman.manifold.network_view import view_modules

_Forward = Callable[[Tensor], Tensor]
_CONVOLVE = {nn.Conv1d: F.conv1d, nn.Conv2d: F.conv2d, nn.Conv3d: F.conv3d}


def network_at(
    network: nn.Module,
    places: Mapping[str, list[tuple[nn.Module, str]]],
    deltas: Mapping[str, LowRankDelta],
    alpha: Tensor,
    hidden: bool,
) -> nn.Module:
    """A network of the same class with ``weight + sum_i alpha_i B_i A_i`` in place of its weights.

    Layers that can use the factors on their activations do so, the others get a merged weight.
    Whoever asks such a layer for its weight gets it merged, too.

    Args:
        network: The network, whose weights are shared and not changed.
        places: Which modules hold each parameter, and under which name.
        deltas: The factors, by the full names of the parameters.
        alpha: The preference ``[m]``, times the scale of the deltas; or ``[n, m]`` for batches of n
            samples, each with a preference of its own.
        hidden: What :func:`~lorpman.manifold.network_view.has_hidden_references` says.

    Raises:
        UsageError: If alpha differs between samples and a layer needs a merged weight.
    """
    twins = view_modules(network, hidden)
    # Most layers have one rank, and so the same scales.
    known: dict[tuple[object, ...], Tensor] = {}
    for name, delta in deltas.items():
        kind = (delta.rank, delta.B.dtype, delta.B.device)
        if kind not in known:
            known[kind] = alpha.to(delta.B).repeat_interleave(delta.rank, -1)
        scales = known[kind]
        for module, key in places[name]:
            late = LateParameters(module, key, delta, alpha)
            forward = applied(module, key, delta, scales)
            if forward is not None:
                replace_insides(twins[module], late, forward)
            else:
                # Of several parameters of one module each is put into the same dictionary.
                own = parameter_dictionary(twins[module])
                replace_insides(twins[module], own | {key: late[key]})
    return next(iter(twins.values()))


def can_apply(module: nn.Module, key: str) -> bool:
    """Whether the parameter ``key`` of a module can stay as it is, with factors on activations.

    Args:
        module: The module that holds it.
        key: Its name in that module.
    """
    # Only of a weight it is known what its layer does with it.
    if key != "weight":
        return False
    if isinstance(module, nn.Linear):
        # A subclass with a forward of its own may do anything; but layers with codes do the same as
        # nn.Linear, in their own way.
        return type(module).forward is nn.Linear.forward or is_coded(module)
    if is_turned_linear(module):
        return True
    if isinstance(module, nn.Embedding):
        # max_norm changes rows of the weight that are looked up, scale_grad_by_freq their
        # gradients: neither would reach the factors.
        plain = module.max_norm is None and not module.scale_grad_by_freq
        return plain and type(module).forward is nn.Embedding.forward
    # The weight is seen as (out k) x (in k), which is a convolution and a matrix if k is 1.
    if type(module) in _CONVOLVE:
        assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
        simple = module.groups == 1 and module.padding_mode == "zeros"
        return simple and module.kernel_size[0] == 1
    return False


def is_turned_linear(module: nn.Module) -> bool:
    """Whether a module is GPT-2's linear layer, whose weight has inputs as rows.

    Args:
        module: Any module.
    """
    # By name: transformers may not be installed.
    kind = type(module)
    return (kind.__module__, kind.__name__) == ("transformers.pytorch_utils", "Conv1D")


def applied(module: nn.Module, key: str, delta: LowRankDelta, scales: Tensor) -> _Forward | None:
    """What a layer computes with its factors, or None if it needs a merged weight.

    Args:
        module: The layer, with the main weight.
        key: Which of its parameters the factors belong to.
        delta: The factors.
        scales: How much of every direction, ``[m r]`` or ``[n, m r]``.
    """
    if not can_apply(module, key):
        return None
    if isinstance(module, nn.Linear):
        return _linear(module, delta, scales)
    if is_turned_linear(module):
        return _turned_linear(module, delta, scales)
    if isinstance(module, nn.Embedding):
        return _embedding(module, delta, scales)
    return _convolution(module, delta, scales)


def _linear(module: nn.Linear, delta: LowRankDelta, scales: Tensor) -> _Forward:
    def forward(x: Tensor) -> Tensor:
        _check_samples(x, scales)
        A, B = delta.A.flatten(0, 1), delta.B.flatten(1)
        inner = F.linear(x.to(A.dtype), A) * _between(scales, x.ndim)
        # The layer's own forward, and not its call: hooks have been run already.
        if is_coded(module) or module.weight.dtype != B.dtype:
            output = module.forward(x)
            return output + F.linear(inner, B).to(output.dtype)
        # As matrices, to which the product can be added in place.
        # addmm_ takes matrices only, and nobody else has seen this output yet.
        output = F.linear(x.reshape(-1, x.shape[-1]), module.weight, module.bias)
        inner = inner.view(-1, inner.shape[-1]).to(output.dtype)
        return output.addmm_(inner, B.T.to(output.dtype)).view(*x.shape[:-1], len(B))

    return forward


def _turned_linear(module: nn.Module, delta: LowRankDelta, scales: Tensor) -> _Forward:
    def forward(x: Tensor) -> Tensor:
        _check_samples(x, scales)
        A, B = delta.A.flatten(0, 1), delta.B.flatten(1)
        inner = (x.to(B.dtype) @ B) * _between(scales, x.ndim)
        output: Tensor = module.forward(x)
        return output + (inner @ A).to(output.dtype)

    return forward


def _embedding(module: nn.Embedding, delta: LowRankDelta, scales: Tensor) -> _Forward:
    def forward(x: Tensor) -> Tensor:
        # One row for all samples, such as positions, becomes one for each: preferences differ.
        if scales.ndim == 1 or x.ndim < 2 or len(x) != 1:
            _check_samples(x, scales)
        A, B = delta.A.flatten(0, 1), delta.B.flatten(1)
        inner = F.embedding(x, B) * _between(scales, x.ndim + 1)
        change, output = inner @ A, module.forward(x)
        if module.padding_idx is not None:
            # As for the layer's own weight, what is padded with teaches nothing.
            padding = (x == module.padding_idx)[..., None]
            change = torch.where(padding, change.detach(), change)
        return output + change.to(output.dtype)

    return forward


def _convolution(module: Any, delta: LowRankDelta, scales: Tensor) -> _Forward:
    convolve, size = _CONVOLVE[type(module)], len(module.kernel_size)

    def forward(x: Tensor) -> Tensor:
        _check_samples(x, scales)
        A = delta.A.reshape(-1, *module.weight.shape[1:])
        B = delta.B.reshape(*delta.B.shape[:1], -1, *[1] * size)
        inner = convolve(
            x.to(A.dtype), A, None, module.stride, module.padding, module.dilation
        ) * scales.view(*scales.shape, *[1] * size)
        output = module.forward(x)
        return output + convolve(inner, B).to(output.dtype)

    return forward


def _between(scales: Tensor, ndim: int) -> Tensor:
    """``[m r]`` as it is; ``[n, m r]`` with as many dimensions as what it is multiplied with."""
    if scales.ndim == 1:
        return scales
    return scales.view(len(scales), *[1] * (ndim - 2), scales.shape[-1])


def _check_samples(x: Tensor, scales: Tensor) -> None:
    if scales.ndim == 2 and (x.ndim == 0 or len(x) != len(scales)):
        raise UsageError(
            f"a layer was given {list(x.shape)}, expected a batch led by {len(scales)} samples, "
            "one for each preference; ask for one preference [m], or run one sample at a time"
        )


class LateParameters(dict[str, Any]):
    """The parameters of a module, one of which is merged when somebody asks for it.

    Args:
        module: The module that holds the main weight.
        late: Its name there.
        delta: The factors.
        alpha: The preference ``[m]``, times their scale.
    """

    def __init__(self, module: nn.Module, late: str, delta: LowRankDelta, alpha: Tensor) -> None:
        self.module, self.late, self.delta, self.alpha = module, late, delta, alpha
        self.kept: tuple[tuple[int, ...], Tensor] | None = None
        # For the keys; values are looked up in the module itself, where they may change meanwhile.
        super().__init__(parameter_dictionary(module))

    def __getitem__(self, key: str) -> Any:
        value = parameter_dictionary(self.module)[key]
        if key != self.late:
            return value
        if self.alpha.ndim == 2:
            raise UsageError(
                f"the weight of a {type(self.module).__name__} was asked for, which is not the "
                "same for all samples; ask for one preference [m], or leave this layer out with "
                "shared="
            )
        return self._merged(value)

    def _merged(self, value: Tensor) -> Tensor:
        # Kept while nothing has changed: networks of transformers ask for their first parameter
        # at every token, only to see on which device it is.
        now = (changes(value), changes(self.delta.A), changes(self.delta.B))
        if self.kept is not None and self.kept[0] == now and not torch.is_grad_enabled():
            return self.kept[1]
        (merged,) = self.delta.merge(value, self.alpha[None], "auto")
        self.kept = None if torch.is_grad_enabled() else (now, merged)
        return merged

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter of that name, computed now if it is a late one.

        Args:
            key: The name.
            default: What there is instead of a missing one.
        """
        # Not the dictionary's own, which would not ask for the weight.
        return self[key] if key in self else default  # noqa: SIM401

    def items(self) -> Any:
        """Names and parameters, the late ones computed now."""
        return [(key, self[key]) for key in self]

    def values(self) -> Any:
        """The parameters, the late ones computed now."""
        return [self[key] for key in self]
