"""The seam: a family of networks, one for every preference."""

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call

from lorpman._torch import parameter_places, parameters_replaced, tree_map
from lorpman.errors import UsageError
from lorpman.manifold.activation_checkpointing import check_outputs, without_recomputation
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.preference import Dirichlet, Sampler, as_preference, grid


class Manifold(nn.Module, ABC):
    """A network for every preference ``alpha``.

    ``alpha`` is always an argument and never state, so concurrent callers cannot disturb one
    another. Everything after training (evaluation, export, the explorer) sees this class only.
    """

    def __init__(self, num_tasks: int) -> None:
        super().__init__()
        if num_tasks < 1:
            raise UsageError(f"num_tasks must be at least 1, got {num_tasks}")
        self.num_tasks = num_tasks

    @abstractmethod
    def forward(self, x: Any, alpha: Tensor) -> Any:
        """``alpha [m]``: the network's own output; ``[b, m]``: the same, each tensor led by b."""

    @abstractmethod
    def solution(self, alpha: Tensor) -> nn.Module:
        """The plain network at ``alpha [m]``; it shares no memory with the manifold."""

    def preferences(self) -> Tensor:
        """The preferences ``[n, m]`` at which this manifold's front is shown."""
        return grid(self.num_tasks)

    def sampler(self, concentration: float) -> Sampler:
        """How training draws its preferences."""
        return Dirichlet(concentration)

    def shared_parameters(self, alpha: Tensor) -> list[nn.Parameter]:
        """The parameters through which the tasks compete at ``alpha [m]``: no head among them.

        What gradient balancers weigh. By default everything that is trained.
        """
        return self.parameters_at(alpha)

    def parameters_at(self, alpha: Tensor) -> list[nn.Parameter]:
        """The trained parameters of the network at ``alpha [m]``, heads included.

        By default everything that is trained.
        """
        del alpha
        return [p for p in self.parameters() if p.requires_grad]

    @property
    def frozen(self) -> bool:
        """Whether the main weights stay still; once frozen, they do so in a later ``fit`` too."""
        return False

    def freeze(self, heads: bool = False) -> None:
        """Stop the main weights (and the heads, if asked) for the rest of training."""
        del heads
        raise UsageError(
            f"{type(self).__name__} has no main network to freeze; leave freeze_epoch unset"
        )

    def begin_epoch(self, epoch: int, epochs: int) -> Mapping[nn.Parameter, "Cut"]:
        """Called before every epoch of training, counted from 0.

        A manifold may make its parameters smaller here, and then says how, so that what others
        know of them, such as an optimiser's momentum, can follow.
        """
        del epoch, epochs
        return {}

    def after_backward(self) -> None:
        """Called in training when the gradients of a step are there, the same on every process."""

    def num_parameters(self) -> int:
        """How many numbers training learns."""
        return sum(p.numel() for p in self.parameters())

    def trace(self) -> Mapping[str, Any]:
        """Plain values worth noting after every epoch of a run; none by default."""
        return {}


@dataclass(frozen=True)
class Cut:
    """What happened to a parameter that is smaller now."""

    before: torch.Size
    """Its shape until now."""
    cut: Callable[[Tensor], Tensor]
    """The part of a tensor of that shape that belongs to what is left of it."""


class ParameterManifold(Manifold):
    """A manifold in parameter space: an untouched network and its weights ``theta(alpha)``.

    The network is copied at the start: the caller's instance never changes, and two manifolds
    made from it do not share weights. It has its weights only while it runs forward, so activation
    checkpointing inside it, which runs it again later, is refused; around the whole manifold it
    works: ``checkpoint(model, x, alpha, use_reentrant=False)``.
    """

    def __init__(self, network: nn.Module, num_tasks: int) -> None:
        super().__init__(num_tasks)
        check_network(network, num_tasks)
        self.network = copy.deepcopy(network)
        # What a solution's parameters are to be, whatever training freezes or leaves empty.
        self._trainable = {name: p.requires_grad for name, p in network.named_parameters()}
        self._turns = Turns()
        self._checked = False

    @abstractmethod
    def _vary(self, alphas: Tensor) -> dict[str, Sequence[Tensor]]:
        """The parameters that depend on ``alphas [b, m]``, b values for each.

        Apart and not stacked: the gradient of a slice would be a tensor as large as the stack.
        """

    def _vary_on(self, x: Any, alphas: Tensor) -> Mapping[str, Sequence["Tensor | LateWeight"]]:
        """The same for one run of the networks on ``x``, and for nothing after it."""
        del x
        return self._vary(alphas)

    def theta(self, alpha: Tensor) -> dict[str, Tensor]:
        """Every parameter of the network at ``alpha``, by the network's own names.

        With ``alpha [b, m]`` every tensor is led by b (views where nothing depends on alpha).
        """
        with self._turns:
            alpha = self._on_device(alpha)
            varied = self._vary(alpha.reshape(-1, self.num_tasks))
            theta = {}
            for name, parameter in self.network.named_parameters():
                if alpha.ndim == 1:
                    theta[name] = varied[name][0] if name in varied else parameter
                elif name in varied:
                    theta[name] = torch.stack(list(varied[name]))
                else:
                    theta[name] = parameter.expand(len(alpha), *parameter.shape)
            return theta

    def forward(self, x: Any, alpha: Tensor) -> Any:
        with self._turns:
            alpha = self._on_device(alpha)
            if alpha.ndim == 1:
                one = self._vary(alpha[None])
                return self._call({name: value[0] for name, value in one.items()}, x)
            varied = self._vary_on(x, alpha)
            rows = [{name: value[j] for name, value in varied.items()} for j in range(len(alpha))]
            return stack_outputs([self._call(row, x) for row in rows])

    def solution(self, alpha: Tensor) -> nn.Module:
        with self._turns, torch.no_grad():
            alpha = self._on_device(alpha)
            if alpha.ndim != 1:
                raise ValueError(f"solution takes one preference [m], got {list(alpha.shape)}")
            network = copy.deepcopy(self.network)
            parameters = dict(network.named_parameters())
            for name, value in self._vary(alpha[None]).items():
                # Not copied into: a hollow network (see below) has no room for it.
                parameters[name].data = value[0].to(parameters[name].dtype, copy=True)
            for name, parameter in parameters.items():
                parameter.requires_grad_(self._trainable[name])
            return network

    def _call(self, varied: Mapping[str, "Tensor | LateWeight"], x: Any) -> Any:
        """The network's output with the parameters ``varied`` in place of its own."""
        if torch.compiler.is_compiling():
            return functional_call(self.network, cast("dict[str, Tensor]", varied), (x,))
        # What functional_call does, without looking for every parameter and buffer again: that
        # takes as long as the forward pass of a small network.
        late = [(name, value) for name, value in varied.items() if isinstance(value, LateWeight)]
        with without_recomputation(), ExitStack() as standing_in:
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
            return self.network(x)

    @cached_property
    def _places(self) -> dict[str, list[tuple[nn.Module, str]]]:
        return parameter_places(self.network)

    def _on_device(self, alpha: Tensor) -> Tensor:
        # Its type is left to each weight: the first one of a network may be an integer code.
        return as_preference(alpha, self.num_tasks).to(next(self.network.parameters()).device)


class LateWeight(ABC):
    """A weight at one preference, of one module, that may not have to be computed."""

    @abstractmethod
    def standing_in(self, module: nn.Module) -> AbstractContextManager[None]:
        """Inside this context ``module`` works as with this weight."""


class Turns:
    """A lock that is copied and pickled as a fresh one.

    ``functional_call`` puts tensors into a network and takes them out again. Two threads at once
    would get, and leave behind, each other's weights, so callers of one network take turns.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        # A compiler cannot trace a lock, and what it makes swaps nothing.
        if not torch.compiler.is_compiling():
            self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        if not torch.compiler.is_compiling():
            self._lock.release()

    def __reduce__(self) -> tuple[type["Turns"], tuple[()]]:
        return Turns, ()


def hollow(network: nn.Module, names: Sequence[str]) -> None:
    """Empty the parameters ``names`` of a network that is only ever run with others in their
    place; they keep their name, device, type and ties, and take no memory."""
    parameters = dict(network.named_parameters())
    for name in names:
        parameters[name].data = parameters[name].data.new_empty(0)
        parameters[name].requires_grad_(False)


def check_network(network: nn.Module, num_tasks: int) -> None:
    """Refuse what no manifold can be built over, in words rather than a later traceback."""
    if not isinstance(network, nn.Module):
        raise UsageError(f"network must be an nn.Module, got {type(network).__name__}")
    if isinstance(network, SharedBottom) and len(network.heads) != num_tasks:
        raise UsageError(
            f"the network has {len(network.heads)} heads, but num_tasks is {num_tasks}; "
            "give one head per task"
        )
    parameters = list(network.parameters())
    if not parameters:
        raise UsageError(f"{type(network).__name__} has no parameters to learn")
    if any(isinstance(p, nn.parameter.UninitializedParameter) for p in parameters):
        raise UsageError(
            f"{type(network).__name__} has lazy parameters without a shape; "
            "run it once on a batch first"
        )
    if any(getattr(module, "sparse", False) for module in network.modules()):
        raise UsageError(
            f"{type(network).__name__} has an embedding with sparse=True, whose gradients cannot "
            "pass through mixed weights; build it with sparse=False"
        )


def shared_names(network: nn.Module, shared: str | Sequence[str] | None) -> list[str]:
    """Names of the parameters below the prefixes ``shared``, in the network's order.

    Default: the bottom of a :class:`SharedBottom`, else every parameter.
    """
    names = [name for name, _ in network.named_parameters()]
    if shared is None:
        shared = ["bottom"] if isinstance(network, SharedBottom) else [""]
    prefixes = [shared] if isinstance(shared, str) else list(shared)
    for prefix in prefixes:
        if not any(_below(name, prefix) for name in names):
            top = sorted({name.split(".")[0] for name in names})
            raise UsageError(
                f"shared prefix '{prefix}' matches no parameter; the network has {', '.join(top)}"
            )
    return [name for name in names if any(_below(name, prefix) for prefix in prefixes)]


def owners(network: nn.Module) -> Iterator[tuple[str, nn.Module, nn.Parameter]]:
    """Every parameter with its full name and the module that holds it, ties once."""
    modules = dict(network.named_modules())
    for name, parameter in network.named_parameters():
        yield name, modules[name.rpartition(".")[0]], parameter


def stack_outputs(outputs: Sequence[Any]) -> Any:
    """Outputs of b forward passes as one structure, each tensor led by b."""
    return _zip_tensors(lambda *values: torch.stack(values), outputs)


def _zip_tensors(combine: Callable[..., Tensor], trees: Sequence[Any]) -> Any:
    def leaf(*values: Any) -> Any:
        return combine(*values) if isinstance(values[0], Tensor) else _plain(values[0])

    return tree_map(leaf, *trees)


def _plain(value: Any) -> Any:
    """``value``, if it is nothing in which a tensor could hide from being split."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return value
    raise UsageError(
        f"the network's output holds a {type(value).__name__}, which cannot be split by "
        "preference; return tensors in lists, tuples or dicts"
    )


def select_output(outputs: Any, index: int) -> Any:
    """The output of pass ``index`` from what :func:`stack_outputs` made."""
    return tree_map(lambda v: v[index] if isinstance(v, Tensor) else _plain(v), outputs)


def _below(name: str, prefix: str) -> bool:
    return prefix == "" or name == prefix or name.startswith(prefix + ".")
