"""PaMaL: one whole network per task, convexly combined."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lorpman._torch import reset_parameters
from lorpman.errors import UsageError
from lorpman.manifold.copying import copy_network
from lorpman.manifold.network_parameters import hollow, shared_names
from lorpman.manifold.parameter_manifold import ParameterManifold


class Convex(ParameterManifold):
    """``theta(alpha) = sum_i alpha_i theta_i`` for every parameter, heads included.

    The first member keeps the weights of the given network; the others are started afresh by
    each layer's own ``reset_parameters`` (a parameter of a layer without one is copied, so there
    the members start equal). Running statistics of norm layers are one set for all preferences.

    Args:
        network: Any network; it is copied.
        num_tasks: The number m of tasks, and of members.
        fixed: Prefixes of the parameters that are learned once instead of once per member; an
            empty string for none. By default these are what stands beside the shared parts: with
            ``shared="bottom.convs"``, the rest of ``bottom``.
        shared: Prefixes of the parameters that the tasks share; by default the bottom of a
            :class:`SharedBottom`, else every parameter.

    Raises:
        UsageError: If a prefix matches no parameter, nothing is left to combine, or the network
            cannot be used.

    >>> model = Convex(nn.Linear(6, 4), num_tasks=2)
    >>> model.num_parameters() == 2 * (6 * 4 + 4)
    True
    """

    def __init__(
        self,
        network: nn.Module,
        num_tasks: int,
        fixed: str | Sequence[str] | None = None,
        shared: str | Sequence[str] | None = None,
    ) -> None:
        super().__init__(network, num_tasks)
        self._shared = frozenset(shared_names(self.network, shared))
        once = _beside(self.network, shared) if fixed is None else _fixed(self.network, fixed)
        names = [name for name, _ in self.network.named_parameters() if name not in once]
        if not names:
            raise UsageError(f"every parameter of {type(network).__name__} is fixed; combine some")
        # nn.ParameterDict refuses names with a dot.
        self._keys = {name: name.replace(".", "/") for name in names}
        given = dict(self.network.named_parameters())
        shapes = {key: (num_tasks, *given[name].shape) for name, key in self._keys.items()}
        self.stacked = nn.ParameterDict(
            {key: given[name].new_empty(shapes[key]) for name, key in self._keys.items()}
        )
        for i, member in enumerate(_starts(self.network, num_tasks)):
            weights = dict(member.named_parameters())
            for name, key in self._keys.items():
                self.stacked[key].data[i] = weights[name].detach()
        # Last, since the members started from it: its own weights are never used again.
        hollow(self.network, names)

    def members(self) -> dict[str, Tensor]:
        """Every combined parameter of all members.

        Returns:
            Tensors ``[m, *shape]`` by the network's own parameter names; not copies.
        """
        return {name: self.stacked[key] for name, key in self._keys.items()}

    def similarity(self) -> dict[str, float]:
        """Cosine similarity of the members' layers, the mean over pairs of members.

        A layer is what one module holds itself: a weight and its bias count as one vector.

        Returns:
            A value from -1 to 1 by the name of the layer.
        """
        layers: dict[str, list[Tensor]] = {}
        for name, values in self.members().items():
            # Weight and bias of a layer count as one vector.
            layer = name.rpartition(".")[0] or name
            layers.setdefault(layer, []).append(values.detach().flatten(1))
        # Inner products add up over the parts of a layer, so that they need not be copied.
        grams = {n: torch.stack([p @ p.T for p in parts]).sum(0) for n, parts in layers.items()}
        return {name: _mean_cosine(gram) for name, gram in grams.items()}

    def trace(self) -> Mapping[str, Any]:
        return {"similarity": self.similarity()} if self.num_tasks > 1 else {}

    def shared_parameters(self, alpha: Tensor) -> list[nn.Parameter]:
        del alpha
        combined = [self.stacked[key] for name, key in self._keys.items() if name in self._shared]
        return [p for p in combined if p.requires_grad]

    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]:
        # alphas.to(v): a network may hold weights of several types.
        return {
            name: torch.tensordot(alphas.to(v), v, 1).unbind() for name, v in self.members().items()
        }


def _starts(network: nn.Module, count: int) -> Iterator[nn.Module]:
    """``count`` networks that start independently; the first is the given one."""
    yield network
    for _ in range(count - 1):
        fresh = copy_network(network)
        # Inner layers first: an outer one (attention) may have its own idea of their start.
        for module in reversed(list(fresh.modules())):
            reset_parameters(module)
        yield fresh


def _beside(network: nn.Module, shared: str | Sequence[str] | None) -> frozenset[str]:
    """What lies below the first name of a shared prefix, but below none of the prefixes."""
    if shared is None:
        return frozenset()
    prefixes = [shared] if isinstance(shared, str) else list(shared)
    parts = [prefix.split(".")[0] for prefix in prefixes]
    return frozenset(shared_names(network, parts)) - frozenset(shared_names(network, prefixes))


def _fixed(network: nn.Module, fixed: str | Sequence[str]) -> frozenset[str]:
    return frozenset(shared_names(network, fixed, "fixed"))


def _mean_cosine(gram: Tensor) -> float:
    """The mean cosine over pairs, from inner products ``[m, m]``; with a zero vector it is 0."""
    norms = gram.diagonal().sqrt()
    # Biases and norm layers may still be all zero: 0 / tiny is 0, where 0 / 0 would be NaN.
    cosines = gram / (norms[:, None] * norms[None, :]).clamp_min(torch.finfo(gram.dtype).tiny)
    first, second = torch.triu_indices(len(gram), len(gram), 1)
    return float(cosines[first, second].mean())
