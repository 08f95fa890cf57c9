"""COSMOS: a network that is told the preference at its input."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import is_parametrized

from lorpman.errors import UsageError
from lorpman.manifold.conditioned import ConditionedManifold
from lorpman.manifold.copying import copy_network


class Cosmos(ConditionedManifold):
    """COSMOS: the preference as more input features (tables) or channels (images).

    The first layer, a Linear or a Conv2d, is widened by ``num_tasks`` inputs; its given weights
    are kept, and those of the new inputs start as a fresh layer's would. For images, ``alpha``
    goes through an up-sampler that is learned too: two transposed convolutions (1 x 1 to 4 x 4 to
    10 x 10, no biases, ReLU after each), then the nearest of its values for every pixel.

    Args:
        network: Takes rows ``[n, k]``, images ``[n, c, h, w]``, or a sequence of either with one
            batch per task; it is copied.
        num_tasks: The number m of tasks.
        layer: The name of the layer that sees the input; by default the first layer with
            parameters, in the order in which the network's modules were defined.

    Raises:
        UsageError: If that layer is no plain Linear and no ungrouped Conv2d, or the network
            cannot be used.

    >>> model = Cosmos(nn.Linear(6, 4), num_tasks=2)
    >>> model(torch.zeros(3, 6), torch.tensor([0.3, 0.7])).shape, model.num_parameters()
    (torch.Size([3, 4]), 36)
    """

    def __init__(self, network: nn.Module, num_tasks: int, layer: str | None = None) -> None:
        super().__init__(network, num_tasks)
        name = _first_layer(self.network) if layer is None else layer
        wide = _widened(self.network, name, num_tasks)
        self.upsampler: nn.Module = nn.Identity()
        # Rows take the numbers of alpha as they are; images need planes.
        if isinstance(wide, nn.Conv2d):
            self.upsampler = _upsampler(num_tasks).to(wide.weight)
        if name == "":
            # The network is that layer itself, which set_submodule cannot replace.
            self.network = wide
        else:
            self.network.set_submodule(name, wide)

    def _extra(self, alpha: Tensor) -> Tensor:
        """What is appended: ``[1, m]``, or planes ``[1, m, 10, 10]``."""
        if isinstance(self.upsampler, nn.Identity):
            return alpha[None]
        return self.upsampler(alpha.view(1, -1, 1, 1))

    def _at(self, x: Any, alpha: Tensor) -> Any:
        return self.network(append(x, self._extra(alpha)))

    def solution(self, alpha: Tensor) -> nn.Module:
        with torch.no_grad():
            extra = self._extra(self._one(alpha)).clone()
        return Appended(copy_network(self.network), extra)


class Appended(nn.Module):
    """A network that always gets the same extra inputs: COSMOS at one preference.

    Args:
        network: The network with the widened layer.
        extra: What is appended to every input, ``[1, m]`` or ``[1, m, h', w']``.
    """

    extra: Tensor

    def __init__(self, network: nn.Module, extra: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("extra", extra)

    def forward(self, x: Any) -> Any:
        """The output of the network for ``x`` with the preference appended.

        Args:
            x: What the network took before it was widened.
        """
        return self.network(append(x, self.extra))


def append(x: Any, extra: Tensor) -> Any:
    """Append the same features or channels to every sample.

    Args:
        x: Rows ``[n, k]``, images ``[n, c, h, w]``, or a sequence of such batches, one per task.
        extra: ``[1, m]`` for rows; ``[1, m, h', w']`` for images, whatever their size.

    Returns:
        ``[n, k + m]`` or ``[n, c + m, h, w]``, or a list of these.

    Raises:
        UsageError: If ``x`` is anything else.

    >>> append(torch.zeros(2, 1), torch.ones(1, 3)).shape
    torch.Size([2, 4])
    """
    if isinstance(x, list | tuple):
        return [append(part, extra) for part in x]
    if not isinstance(x, Tensor) or x.ndim != extra.ndim:
        given = f"{list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        expected = "rows [n, k]" if extra.ndim == 2 else "images [n, c, h, w]"
        raise UsageError(f"COSMOS appends the preference to {expected}, found {given}")
    if x.ndim == 4:
        # Images of every size: the up-sampler gives 10 x 10.
        extra = F.interpolate(extra, size=x.shape[2:], mode="nearest")
    return torch.cat([x, extra.to(x.dtype).expand(len(x), *extra.shape[1:])], 1)


def _upsampler(m: int) -> nn.Sequential:
    return nn.Sequential(
        nn.ConvTranspose2d(m, m, 4, bias=False),
        nn.ReLU(),
        nn.ConvTranspose2d(m, m, 6, stride=2, padding=1, bias=False),
        nn.ReLU(),
    )


def _first_layer(network: nn.Module) -> str:
    for name, module in network.named_modules():
        if next(module.parameters(recurse=False), None) is not None:
            return name
    raise UsageError(f"{type(network).__name__} has no layer that could take the preference")


def _widened(network: nn.Module, name: str, extra: int) -> nn.Linear | nn.Conv2d:
    """The layer ``name`` with ``extra`` more inputs behind those it has."""
    layer = dict(network.named_modules()).get(name)
    fits = isinstance(layer, nn.Linear) or (isinstance(layer, nn.Conv2d) and layer.groups == 1)
    if not isinstance(layer, nn.Linear | nn.Conv2d) or not fits or is_parametrized(layer):
        described = "no such module" if layer is None else f"a {type(layer).__name__}"
        raise UsageError(
            f"COSMOS widens the layer that sees the input, a plain Linear or ungrouped Conv2d; "
            f"'{name}' is {described}; name the right one with layer="
        )
    wide = copy.deepcopy(layer)
    attribute = "in_features" if isinstance(layer, nn.Linear) else "in_channels"
    outputs, inputs, *kernel = layer.weight.shape
    setattr(wide, attribute, inputs + extra)
    wide.weight = nn.Parameter(layer.weight.new_empty(outputs, inputs + extra, *kernel))
    # Of the whole layer at once: the start of the new columns depends on how many inputs it has.
    wide.reset_parameters()
    with torch.no_grad():
        wide.weight[:, :inputs] = layer.weight
        if wide.bias is not None and layer.bias is not None:
            wide.bias.copy_(layer.bias)
    return wide
