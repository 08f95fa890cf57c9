"""Manifolds in parameter space: one network, and its weights at every preference."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lorpman._torch import parameter_places, parameters_replaced
from lorpman.manifold.activation_checkpointing import check_outputs, without_recomputation
from lorpman.manifold.base import Manifold
from lorpman.manifold.copying import copy_network
from lorpman.manifold.network_call import arguments, call_network
from lorpman.manifold.network_parameters import check_network
from lorpman.manifold.network_view import copy_sharing_weights
from lorpman.manifold.one_by_one import MergedOnce, OneByOne
from lorpman.manifold.one_caller import OneCallerAtATime
from lorpman.manifold.stacked_outputs import stack_outputs
from lorpman.preference import as_preference


class ParameterManifold(Manifold):
    """A manifold in parameter space: an untouched network and its weights ``theta(alpha)``.

    The network is copied at the start: the caller's instance never changes, and two manifolds
    made from it do not share weights. The copy has the weights of a preference only while it runs
    forward, so activation checkpointing inside it, which runs it again later, is refused; around
    the whole manifold it works: ``checkpoint(model, x, alpha, use_reentrant=False)``.

    Args:
        network: Any network; its parameters are named as in its ``named_parameters()``.
        num_tasks: The number m of tasks, which is the length of a preference.
        share_weights: Whether the copy's parameters stay in the memory of the caller's network,
            for manifolds that do not change them.

    Raises:
        UsageError: If no manifold can be built over the network (no parameters, another number
            of heads than tasks, lazy parameters, sparse gradients).
    """

    def __init__(self, network: nn.Module, num_tasks: int, share_weights: bool = False) -> None:
        super().__init__(num_tasks)
        check_network(network, num_tasks)
        self.network = copy_sharing_weights(network) if share_weights else copy_network(network)
        # What a solution's parameters are to be, whatever training freezes or leaves empty.
        self._trainable = {name: p.requires_grad for name, p in network.named_parameters()}
        self._one_caller = OneCallerAtATime()
        self._checked = False

    @abstractmethod
    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]:
        """The parameters that depend on ``alphas [b, m]``, b values for each.

        Apart and not stacked: the gradient of a slice would be a tensor as large as the stack.
        """

    def weights_on(self, x: Any, alphas: Tensor) -> Mapping[str, Sequence["Tensor | LateWeight"]]:
        """The parameters that depend on alpha, for one run of the networks on the same data.

        Args:
            x: What the networks are run on, and nothing else.
            alphas: The preferences ``[b, m]``.

        Returns:
            By the network's own names, b values for each.
        """
        del x
        return self._vary(alphas)

    def theta(self, alpha: Tensor) -> dict[str, Tensor]:
        """Every parameter of the network at one or several preferences.

        Args:
            alpha: A preference ``[m]``, or several ``[b, m]``.

        Returns:
            Tensors by the network's own parameter names; with ``[b, m]`` each is led by b. What
            does not depend on alpha is the parameter itself, or a view of it.

        Raises:
            ValueError: If ``alpha`` does not lie on the simplex.
        """
        with self._one_caller:
            alpha = self._on_device(alpha)
            varied = self._vary(alpha.reshape(-1, self.num_tasks))
            theta = {}
            for name, parameter in self.network.named_parameters():
                if alpha.ndim == 1:
                    theta[name] = varied[name][0] if name in varied else parameter
                elif name in varied:
                    theta[name] = torch.stack(list(varied[name]))
                else:
                    # The same for all preferences: b views of one tensor, no copies.
                    theta[name] = parameter.expand(len(alpha), *parameter.shape)
            return theta

    def forward(self, x: Any, alpha: Tensor) -> Any:
        with self._one_caller:
            alpha = self._on_device(alpha)
            if alpha.ndim == 1:
                # Whole weights, since nothing is shared between preferences here.
                one = self._vary(alpha[None])
                return self.run_with({name: value[0] for name, value in one.items()}, x)
            varied = self.weights_on(x, alpha)
            rows = [{name: value[j] for name, value in varied.items()} for j in range(len(alpha))]
            # One after the other: under vmap, norm layers could not update their statistics.
            return stack_outputs([self.run_with(row, x) for row in rows])

    def solution(self, alpha: Tensor) -> nn.Module:
        # Under the lock: a copy that is made while another thread runs would have its weights.
        with self._one_caller, torch.no_grad():
            alpha = self._on_device(alpha)
            if alpha.ndim != 1:
                raise ValueError(f"solution takes one preference [m], got {list(alpha.shape)}")
            network = copy_network(self.network)
            parameters = dict(network.named_parameters())
            for name, value in self._vary(alpha[None]).items():
                # Replaced, not copied into: a hollow network has no room for it.
                parameters[name].data = value[0].to(parameters[name].dtype, copy=True)
            for name, parameter in parameters.items():
                parameter.requires_grad_(self._trainable[name])
            return network

    @contextmanager
    def at(self, alpha: Tensor | Sequence[float]) -> Iterator[nn.Module]:
        """The network at a preference, for any use of it, over the manifold's own weights.

        Other callers wait until the context ends; then the network has its own weights again.

        Args:
            alpha: The preference ``[m]``.

        Raises:
            ValueError: If there are several preferences.
        """
        with self._one_caller:
            given = self._on_device(alpha)
            if given.ndim != 1:
                raise ValueError(f"at takes one preference [m], got {list(given.shape)}")
            varied = {name: value[0] for name, value in self._vary(given[None]).items()}
            with without_recomputation(), parameters_replaced(self._places, varied):
                yield self.network

    def one_by_one(self, alphas: Tensor) -> OneByOne | None:
        return MergedOnce(self, self._on_device(alphas))

    def run_with(self, varied: Mapping[str, "Tensor | LateWeight"], x: Any) -> Any:
        """The network's output with other weights than its own.

        Args:
            varied: Some parameters by the network's own names.
            x: What the network takes.
        """
        if torch.compiler.is_compiling():
            return functional_call(
                self.network, cast("dict[str, Tensor]", varied), *arguments(self.network, x)
            )
        # What functional_call does, without looking for every parameter and buffer again: that
        # takes as long as the forward pass of a small network.
        late = [(name, value) for name, value in varied.items() if isinstance(value, LateWeight)]
        # ExitStack, since the number of late weights is known only now.
        with self._one_caller, without_recomputation(), ExitStack() as standing_in:
            for name, value in late:
                ((module, _),) = self._places[name]
                standing_in.enter_context(value.standing_in(module))
            outputs = self._call_with(
                {name: value for name, value in varied.items() if isinstance(value, Tensor)}, x
            )
        if not self._checked and torch.is_grad_enabled():
            # Once, since it takes a part of a small network's forward pass.
            check_outputs(outputs, x)
            self._checked = True
        return outputs

    def _call_with(self, varied: dict[str, Tensor], x: Any) -> Any:
        with parameters_replaced(self._places, varied):
            return call_network(self.network, x)

    @cached_property
    def _places(self) -> dict[str, list[tuple[nn.Module, str]]]:
        # Looked for once: the tensors in these places change, the places do not.
        return parameter_places(self.network)

    def _on_device(self, alpha: Tensor | Sequence[float]) -> Tensor:
        # Its type is left to each weight: the first one of a network may be an integer code.
        return as_preference(alpha, self.num_tasks).to(next(self.network.parameters()).device)


class LateWeight(ABC):
    """A weight at one preference, of one module, that may not have to be computed."""

    cut: Callable[[Tensor], Tensor] = staticmethod(lambda shared: shared)
    """What a tensor goes through on its way from what all networks share into this one."""

    @abstractmethod
    def standing_in(self, module: nn.Module) -> AbstractContextManager[None]:
        """Inside this context ``module`` works as if it had this weight.

        Args:
            module: The module of the network that the weight belongs to.
        """
