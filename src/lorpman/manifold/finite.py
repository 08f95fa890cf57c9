"""Finite fronts: one network, or k networks each at a preference of its own."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError, shown
from lorpman.manifold.base import Manifold
from lorpman.manifold.copying import copy_network
from lorpman.manifold.network_call import call_network
from lorpman.manifold.network_parameters import check_network, shared_names
from lorpman.manifold.parameter_manifold import ParameterManifold
from lorpman.manifold.stacked_outputs import stack_outputs
from lorpman.preference import Fixed, Sampler, as_preference, grid


class Single(ParameterManifold):
    """One network for every preference: what a single-solution method trains.

    Its front is one point, shown at the centre of the simplex.

    Args:
        network: Any network; it is copied.
        num_tasks: The number m of tasks.
        shared: Prefixes of the parameters that the tasks compete for; by default the bottom of a
            :class:`SharedBottom`, else every parameter.

    Raises:
        UsageError: If a prefix matches no parameter, or the network cannot be used.

    >>> model = Single(nn.Linear(3, 2), num_tasks=2)
    >>> model.preferences()
    tensor([[0.5000, 0.5000]])
    >>> model(torch.zeros(5, 3), torch.tensor([0.2, 0.8])).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, network: nn.Module, num_tasks: int, shared: str | Sequence[str] | None = None
    ) -> None:
        super().__init__(network, num_tasks)
        self._shared = frozenset(shared_names(self.network, shared))

    def preferences(self) -> Tensor:
        return grid(self.num_tasks, 1)

    def sampler(self, concentration: float) -> Sampler:
        del concentration
        return Fixed(self.preferences())

    def shared_parameters(self, alpha: Tensor) -> list[nn.Parameter]:
        del alpha
        return _trained(self.network, self._shared)

    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]:
        # No parameter depends on the preference: the network runs with those it has.
        del alphas
        return {}


class Population(Manifold):
    """k networks, each at its own preference: a discrete front.

    A preference is answered by the member whose preference is nearest to it.

    Args:
        network: Any network; it is copied k times.
        alphas: The preferences of the members, ``[k, m]``, all different.
        shared: Prefixes of the parameters that the tasks compete for; by default the bottom of a
            :class:`SharedBottom`, else every parameter.
        independent: Whether all members but the first start from fresh weights, by each layer's
            ``reset_parameters``; otherwise all start from the given ones.

    Raises:
        UsageError: If the preferences have another shape or repeat, a prefix matches no
            parameter, a layer cannot be started afresh, or the network cannot be used.
        ValueError: If a preference does not lie on the simplex.

    >>> model = Population(nn.Linear(3, 2), torch.eye(2))
    >>> torch.equal(model.solution(torch.tensor([0.9, 0.1])).weight, model.members[0].weight)
    True
    """

    alphas: Tensor

    def __init__(
        self,
        network: nn.Module,
        alphas: Tensor,
        shared: str | Sequence[str] | None = None,
        independent: bool = True,
    ) -> None:
        if not isinstance(alphas, Tensor):
            raise UsageError(f"alphas must be a tensor [k, m], got {shown(alphas)}")
        if alphas.ndim != 2 or len(alphas) == 0:
            raise UsageError(f"alphas must have shape [k, m], got {list(alphas.shape)}")
        super().__init__(alphas.shape[1])
        alphas = as_preference(alphas, self.num_tasks).detach().clone()
        if len(alphas.unique(dim=0)) != len(alphas):
            raise UsageError("alphas must differ, or one member could never be asked for")
        check_network(network, self.num_tasks)
        self.register_buffer("alphas", alphas)
        self.members = nn.ModuleList(copy_network(network) for _ in alphas)
        self._shared = frozenset(shared_names(network, shared))
        if independent:
            # The first keeps the given weights, which may be a start that was chosen with care.
            for member in list(self.members)[1:]:
                reset(member)

    def forward(self, x: Any, alpha: Tensor) -> Any:
        chosen = self.nearest(alpha)
        if chosen.ndim == 0:
            return call_network(self.members[int(chosen)], x)
        return stack_outputs([call_network(self.members[j], x) for j in chosen.tolist()])

    def solution(self, alpha: Tensor) -> nn.Module:
        chosen = self.nearest(alpha)
        if chosen.ndim:
            raise ValueError(f"solution takes one preference [m], got {list(alpha.shape)}")
        return copy_network(self.members[int(chosen)])

    def nearest(self, alpha: Tensor) -> Tensor:
        """Which member answers a preference.

        Args:
            alpha: A preference ``[m]``, or several ``[b, m]``.

        Returns:
            The member's index, a scalar for ``[m]`` and ``[b]`` for ``[b, m]``.

        Raises:
            ValueError: If ``alpha`` does not lie on the simplex.
        """
        alpha = as_preference(alpha, self.num_tasks).to(self.alphas)
        # Not cdist: its matrix product loses the digits by which a member recognises its own.
        return (alpha[..., None, :] - self.alphas).square().sum(-1).argmin(-1)

    def preferences(self) -> Tensor:
        return self.alphas

    def sampler(self, concentration: float) -> Sampler:
        del concentration
        return Fixed(self.alphas)

    def parameters_at(self, alpha: Tensor) -> list[nn.Parameter]:
        member = self.members[int(self.nearest(alpha))]
        return [p for p in member.parameters() if p.requires_grad]

    def shared_parameters(self, alpha: Tensor) -> list[nn.Parameter]:
        return _trained(self.members[int(self.nearest(alpha))], self._shared)


def rays(m: int, k: int) -> Tensor:
    """``k`` preferences whose inverses spread evenly over the directions of the losses, ``[k, m]``.

    Two tasks: equal angles from axis to axis, as PMTL and EPO place them; more: ``lp.grid(m, k)``.

    Args:
        m: The number of tasks.
        k: The number of preferences.

    >>> rays(2, 3)
    tensor([[0.0000, 1.0000],
            [0.5000, 0.5000],
            [1.0000, 0.0000]])
    """
    if m != 2 or k == 1:
        return grid(m, k)
    angles = torch.linspace(0, math.pi / 2, k, dtype=torch.float64)
    points = torch.stack([angles.sin(), angles.cos()], 1).clamp_min(0)
    # cos(pi / 2) is 6e-17 in floats; the ends are to be corners exactly.
    points[0, 0] = points[-1, 1] = 0
    return (points / points.sum(1, keepdim=True)).float()


def reset(network: nn.Module) -> None:
    """Give every layer fresh weights, as its class would start it.

    Args:
        network: The network, which is changed.

    Raises:
        UsageError: If a layer has parameters, but no ``reset_parameters``.
    """
    for name, module in network.named_modules():
        start_afresh = getattr(module, "reset_parameters", None)
        if callable(start_afresh):
            start_afresh()
        elif next(module.parameters(recurse=False), None) is not None:
            raise UsageError(
                f"cannot start members independently: {type(module).__name__} "
                f"('{name}') has parameters but no reset_parameters(); give it one, or pass "
                "independent=False"
            )


def _trained(network: nn.Module, names: frozenset[str]) -> list[nn.Parameter]:
    return [p for name, p in network.named_parameters() if name in names and p.requires_grad]
