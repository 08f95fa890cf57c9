"""FiLM: one network whose features are scaled and shifted as the preference asks."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lorpman.errors import UsageError
from lorpman.manifold.conditioned import ConditionedManifold
from lorpman.manifold.copying import copy_network
from lorpman.manifold.network_call import arguments
from lorpman.manifold.one_caller import OneCallerAtATime
from lorpman.manifold.shared_bottom import SharedBottom

_ACTIVATIONS = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softplus)
# What layers call the size of dimension 1 of their output.
_WIDTHS = ("out_channels", "num_features", "num_channels", "out_features")


class Film(ConditionedManifold):
    """FiLM: ``x <- gamma(alpha) x + beta(alpha)`` per channel, after every stage of a network.

    ``gamma = 1 + W alpha + c`` and ``beta`` come from one Linear(m, 2C) per stage that starts at
    zero, so at first every preference gives the network as it came.

    Args:
        network: Any network; it is copied.
        num_tasks: The number m of tasks.
        stages: Names of the modules whose outputs ``[n, C, ...]`` are modulated, or a mapping
            from such names to C, where C is not the width of the stage's last layer. By default
            those that a part of the network declares in an attribute ``stages``, else all
            activations of the shared bottom. A stage should end after a norm layer: one that
            follows it would undo the modulation.

    Raises:
        UsageError: If a stage is no module of the network, its width cannot be told, there is no
            stage at all, or the network cannot be used.

    >>> net = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> Film(net, num_tasks=3).num_parameters() - (6 * 4 + 4 + 4 * 2 + 2) == (3 + 1) * 2 * 4
    True
    """

    def __init__(
        self,
        network: nn.Module,
        num_tasks: int,
        stages: Sequence[str] | Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(network, num_tasks)
        widths = _stage_widths(self.network, stages)
        self._one_caller = OneCallerAtATime()
        like = next(self.network.parameters())
        # nn.ModuleDict refuses names with a dot.
        self._keys = {name: name.replace(".", "/") for name in widths}
        self.modulations = nn.ModuleDict()
        for name, key in self._keys.items():
            linear = nn.Linear(num_tasks, 2 * widths[name], device=like.device, dtype=like.dtype)
            # Scale 1 and shift 0: at first every preference gives the network as it came.
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
            self.modulations[key] = linear
            stage = self.network.get_submodule(name)
            # Scale and shift are buffers of the network, so that they can be swapped for those of
            # alpha, and a solution keeps its own.
            self.network.set_submodule(name, Modulated(stage, like.new_ones(widths[name])))

    def _modulation(self, alpha: Tensor) -> dict[str, Tensor]:
        """Scale and shift of every stage, ``[C]`` each, by their names in the network."""
        tensors: dict[str, Tensor] = {}
        for name, key in self._keys.items():
            gamma, beta = self.modulations[key](alpha).chunk(2)
            tensors |= {f"{name}.scale": 1 + gamma, f"{name}.shift": beta}
        return tensors

    def _at(self, x: Any, alpha: Tensor) -> Any:
        # functional_call swaps the buffers inside the network, which other threads share.
        with self._one_caller:
            return functional_call(
                self.network, self._modulation(alpha), *arguments(self.network, x)
            )

    def solution(self, alpha: Tensor) -> nn.Module:
        with self._one_caller:
            network = copy_network(self.network)
        buffers = dict(network.named_buffers())
        with torch.no_grad():
            for name, value in self._modulation(self._one(alpha)).items():
                buffers[name].copy_(value)
        return network


class Modulated(nn.Module):
    """A stage, and the scale and shift of its channels.

    Those are buffers, not parameters: training sets them anew from the preference in every pass,
    and a solution keeps those of its own.

    Args:
        stage: The module whose output is modulated.
        ones: The scale at first, ``[C]``.
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, stage: nn.Module, ones: Tensor) -> None:
        super().__init__()
        self.stage = stage
        self.register_buffer("scale", ones)
        self.register_buffer("shift", torch.zeros_like(ones))

    def forward(self, *inputs: Any) -> Tensor:
        """Run the stage and modulate its output.

        Args:
            *inputs: What the stage takes.

        Returns:
            ``[n, C, ...]``.

        Raises:
            UsageError: If the stage's output has another number of channels.
        """
        features = self.stage(*inputs)
        if features.ndim < 2 or features.shape[1] != len(self.scale):
            raise UsageError(
                f"FiLM modulates features [n, {len(self.scale)}, ...], found "
                f"{list(features.shape)}; pass stages={{name: channels}}"
            )
        shape = (-1, *[1] * (features.ndim - 2))
        return features * self.scale.view(shape) + self.shift.view(shape)


def _stage_widths(
    network: nn.Module, stages: Sequence[str] | Mapping[str, int] | None
) -> dict[str, int]:
    """The channels of every stage, by its name."""
    chosen = _default_stages(network) if stages is None else stages
    modules = dict(network.named_modules())
    for name in chosen:
        if name not in modules or name == "":
            raise UsageError(f"FiLM stage '{name}' is no module inside the network")
    if not chosen:
        raise UsageError(
            f"FiLM found no stage in {type(network).__name__}: no module declares stages, and "
            "there is no activation module; name the stages with stages="
        )
    return {
        name: chosen[name] if isinstance(chosen, Mapping) else _width(network, name)
        for name in chosen
    }


def _default_stages(network: nn.Module) -> Sequence[str] | Mapping[str, int]:
    for prefix, module in network.named_modules():
        if isinstance(declared := getattr(module, "stages", None), tuple):
            names = [f"{prefix}.{name}" if prefix else name for name in declared]
            channels = getattr(module, "channels", ())
            return dict(zip(names, channels, strict=True)) if channels else names
    # Not in the heads: they belong to one task each, so a preference has nothing to trade there.
    inside = "bottom." if isinstance(network, SharedBottom) else ""
    candidates = ((n, m) for n, m in network.named_modules() if n.startswith(inside))
    return [name for name, module in candidates if name and isinstance(module, _ACTIVATIONS)]


def _width(network: nn.Module, stage: str) -> int:
    """Channels of the last layer in the stage, or of the last one before it if it has none."""
    # named_modules() goes in the order of definition, which is that of the forward pass in nearly
    # all networks; where it is not, Modulated finds out when it runs.
    width, entered = None, False
    for name, module in network.named_modules():
        inside = name == stage or name.startswith(stage + ".")
        if entered and not inside:
            break
        entered = entered or inside
        if next(module.parameters(recurse=False), None) is not None:
            sizes = (getattr(module, attribute, None) for attribute in _WIDTHS)
            width = next((size for size in sizes if isinstance(size, int)), width)
    if width is None:
        raise UsageError(
            f"cannot tell the channels of stage '{stage}'; pass stages={{'{stage}': channels}}"
        )
    return width
