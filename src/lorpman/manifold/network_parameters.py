"""Which parameters a network has, and whether a manifold can be built over it."""

from collections.abc import Iterable, Iterator, Sequence

from torch import nn

from lorpman._torch import is_compiled
from lorpman.errors import UsageError, shown
from lorpman.manifold.copying import at
from lorpman.manifold.shared_bottom import SharedBottom


def check_network(network: nn.Module, num_tasks: int) -> None:
    """Refuse what no manifold can be built over, in words rather than a later traceback.

    Args:
        network: What the caller gave as a network.
        num_tasks: The number of tasks, and of heads if the network is a :class:`SharedBottom`.

    Raises:
        UsageError: If it is no module, has compiled parts, has no parameters, lazy or sparse ones,
            or has another number of heads than there are tasks.
    """
    if not isinstance(network, nn.Module):
        raise UsageError(f"network must be an nn.Module, got {type(network).__name__}")
    if isinstance(network, SharedBottom) and len(network.heads) != num_tasks:
        raise UsageError(
            f"the network has {len(network.heads)} heads, but num_tasks is {num_tasks}; "
            "give one head per task"
        )
    compiled = [name for name, module in network.named_modules() if is_compiled(module)]
    if compiled:
        raise UsageError(
            f"{at(compiled[0])} is compiled or scripted, and would keep the weights that it was "
            "compiled with; pass it uncompiled, and compile the manifold: torch.compile(model), "
            "or fit(..., compiled=True)"
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


def check_values(model: nn.Module) -> None:
    """Refuse a model whose tensors have no values.

    Args:
        model: A manifold, or a network.

    Raises:
        UsageError: If a tensor is on the meta device; the message names it.
    """
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if value.is_meta:
            raise UsageError(
                f"'{name}' is on the meta device, where tensors have shapes and no values; build "
                "the network on a real one, or load its weights first"
            )


def shared_names(
    network: nn.Module, shared: str | Sequence[str] | None, called: str = "shared"
) -> list[str]:
    """Names of the parameters that the tasks share, in the network's order.

    Args:
        network: Any module.
        shared: Prefixes of their names; by default the bottom of a :class:`SharedBottom`, else
            every parameter.
        called: What the argument is called, for the error.

    Raises:
        UsageError: If no parameter has one of the prefixes, or they are no names.
    """
    names = [name for name, _ in network.named_parameters()]
    if shared is None:
        # The heads belong to one task each; there is nothing to trade in them.
        shared = ["bottom"] if isinstance(network, SharedBottom) else [""]
    prefixes = [shared] if isinstance(shared, str) else shared
    if not isinstance(prefixes, Iterable) or not all(isinstance(p, str) for p in prefixes):
        raise UsageError(
            f"{called} must be a prefix of parameter names, or a list of them, got {shown(shared)}"
        )
    prefixes = list(prefixes)
    for prefix in prefixes:
        if not any(below(name, prefix) for name in names):
            top = sorted({name.split(".")[0] for name in names})
            raise UsageError(
                f"shared prefix '{prefix}' matches no parameter; the network has {', '.join(top)}"
            )
    return [name for name in names if any(below(name, prefix) for prefix in prefixes)]


def owners(network: nn.Module) -> Iterator[tuple[str, nn.Module, nn.Parameter]]:
    """Every parameter with its full name and the module that holds it.

    A parameter that several modules share comes once, under its first name.

    Args:
        network: Any module.
    """
    modules = dict(network.named_modules())
    for name, parameter in network.named_parameters():
        yield name, modules[name.rpartition(".")[0]], parameter


def hollow(network: nn.Module, names: Sequence[str]) -> None:
    """Empty parameters of a network that is only ever run with others in their place.

    They keep their name, device, type and ties, and take no memory.

    Args:
        network: The network, which is changed.
        names: The full names of those parameters.
    """
    parameters = dict(network.named_parameters())
    for name in names:
        # The data is exchanged and not the parameter, which would break ties between modules.
        parameters[name].data = parameters[name].data.new_empty(0)
        # Otherwise it would count as trained, and an optimiser would wait for its gradient.
        parameters[name].requires_grad_(False)


def below(name: str, prefix: str) -> bool:
    """Whether ``prefix`` is the name of a parameter, or of a module that holds it.

    Args:
        name: The full name of the parameter.
        prefix: The name that may stand above it; "" stands above all.
    """
    return prefix == "" or name == prefix or name.startswith(prefix + ".")
