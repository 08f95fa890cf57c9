"""Every call of something private in torch or Lightning Fabric, each in a function of its own.

Private names may go with any release. They stand together here so that one look tells what a new
release can break; a test refuses them everywhere else in the package. Each comment says for which
versions the name was checked, and why no public one does.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

# Checked: torch 2.13.0. The public modules that have it (optree) do not know the containers that
# libraries register with torch, such as the outputs of transformers.
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = [
    "BATCH_NORMS",
    "CONVOLUTIONS",
    "NORMS_WITH_STATISTICS",
    "attributes",
    "call_in_precision",
    "changes",
    "child_processes",
    "forward_without_ban",
    "insides_replaced",
    "is_compiled",
    "is_transformed",
    "parameter_dictionary",
    "parameter_places",
    "parameters_replaced",
    "plain_attributes",
    "replace_insides",
    "reset_parameters",
    "saved_tensor_hooks",
    "setup_as_compiled",
    "standard_gamma",
    "storage_id",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
    "twin_modules",
]

# What torch has as private base classes (_BatchNorm, _NormBase, _ConvNd), by public names. Lazy
# layers become one of these when they first run.
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
"""Layers that normalise by the statistics of the batch."""
NORMS_WITH_STATISTICS = (
    *BATCH_NORMS,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
)
"""Layers that can keep a running mean and variance."""
CONVOLUTIONS = (
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
"""Layers that have a kernel."""


def parameter_places(network: nn.Module) -> dict[str, list[tuple[nn.Module, str]]]:
    """Where a network holds its parameters.

    Args:
        network: Any module.

    Returns:
        For every parameter, by its full name, the modules that hold it and its name there. There
        are several if it is tied.
    """
    names = {parameter: name for name, parameter in network.named_parameters()}
    places: dict[str, list[tuple[nn.Module, str]]] = {name: [] for name in names.values()}
    # Ties are what named_parameters(recurse=False) of each module shows and the network's does not.
    for module in network.modules():
        for key, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            places[names[parameter]].append((module, key))
    return places


@contextmanager
def parameters_replaced(
    places: Mapping[str, list[tuple[nn.Module, str]]], values: Mapping[str, Tensor]
) -> Iterator[None]:
    """Inside this context a network has other tensors in place of some of its parameters.

    Args:
        places: What :func:`parameter_places` says of the network.
        values: The tensors, by the full names of the parameters.
    """
    # Checked: torch 2.13.0. torch.func.functional_call does the same, but looks for every parameter
    # and buffer again in each call, which takes as long as the forward pass of a small network.
    # The dictionary is looked up each time: torch.export puts copies in place of it.
    swaps = [(place, value) for name, value in values.items() for place in places[name]]
    before = [module._parameters[key] for (module, key), _ in swaps]
    try:
        for (module, key), value in swaps:
            module._parameters[key] = value  # type: ignore[assignment]
        yield
    finally:
        for ((module, key), _), parameter in zip(swaps, before, strict=True):
            module._parameters[key] = parameter


@contextmanager
def insides_replaced(
    module: nn.Module, parameters: dict[str, Any], forward: Callable[..., Any]
) -> Iterator[None]:
    """Inside this context a module has another dictionary of parameters, and another forward.

    Args:
        module: Any module.
        parameters: What it and others find as its parameters.
        forward: What is computed when it is called.
    """
    # Checked: torch 2.13.0. No public way lets a parameter be computed when it is first asked for.
    insides = module.__dict__
    before = insides["_parameters"]
    insides["_parameters"], insides["forward"] = parameters, forward
    try:
        yield
    finally:
        insides["_parameters"] = before
        del insides["forward"]


def parameter_dictionary(module: nn.Module) -> dict[str, Any]:
    """The dictionary in which a module looks for its parameters; None for one that it lacks.

    Args:
        module: The module.
    """
    # Checked: torch 2.13.0. named_parameters leaves out what a module lacks.
    return cast("dict[str, Any]", vars(module)["_parameters"])


def replace_insides(
    module: nn.Module, parameters: dict[str, Any], forward: Callable[..., Any] | None = None
) -> None:
    """Give a module another dictionary of parameters, and perhaps another forward, for good.

    Args:
        module: The module, which is changed.
        parameters: Takes the place of its dictionary of parameters.
        forward: Takes the place of its forward; None leaves that as it is.
    """
    # Checked: torch 2.13.0. No public way lets a parameter be computed when it is asked for.
    vars(module)["_parameters"] = parameters
    if forward is not None:
        vars(module)["forward"] = forward


def twin_modules(network: nn.Module) -> dict[nn.Module, nn.Module]:
    """New modules of the same classes, with the same dictionaries of parameters, buffers and hooks.

    Args:
        network: Any module.

    Returns:
        For every module of the network its twin, the whole network first.
    """
    # Checked: torch 2.13.0. copy.copy does this for one module, and leaves its children shared.
    twins: dict[nn.Module, nn.Module] = {}
    for module in network.modules():
        # Not the class's own __new__, with which FSDP gives out other classes.
        twins[module] = object.__new__(type(module))
        vars(twins[module]).update(vars(module))
    for module, twin in twins.items():
        children = vars(module)["_modules"].items()
        vars(twin)["_modules"] = {n: None if c is None else twins[c] for n, c in children}
    return twins


def attributes(module: nn.Module) -> Iterator[Any]:
    """What a module holds beside its children, parameters and buffers.

    Args:
        module: The module.
    """
    # Checked: torch 2.13.0. No public function tells its own attributes from those of torch.
    for name, value in vars(module).items():
        if name not in ("_modules", "_parameters", "_buffers"):
            yield value


def reset_parameters(module: nn.Module) -> bool:
    """Start the weights that a module holds itself afresh, as its class does.

    Args:
        module: Any module; those inside it are left alone.

    Returns:
        Whether its class has a method for that.
    """
    # Checked: torch 2.13.0. nn.MultiheadAttention and nn.Transformer have only the private one.
    for name in ("reset_parameters", "_reset_parameters"):
        if callable(reset := getattr(module, name, None)):
            reset()
            return True
    return False


def plain_attributes(module: nn.Module) -> dict[str, Any]:
    """What a module holds itself and torch does not know of: no parameter, buffer or module.

    Args:
        module: The module.
    """
    # Checked: torch 2.13.0. The public ways list what is registered, and nothing else.
    registered = ("_parameters", "_buffers", "_modules")
    return {key: value for key, value in vars(module).items() if key not in registered}


def is_compiled(module: nn.Module) -> bool:
    """Whether a module was compiled by ``torch.compile``, by its own method, or scripted.

    Args:
        module: The module itself; its children are not looked at.
    """
    # Checked: torch 2.13.0. No public name tells a compiled module from a plain one.
    return (
        "_orig_mod" in module._modules
        or getattr(module, "_compiled_call_impl", None) is not None
        or isinstance(module, torch.jit.ScriptModule)
    )


def saved_tensor_hooks() -> Any:
    """The innermost hooks on saved tensors that are set now, such as those of checkpointing.

    Returns:
        Something that is equal for equal hooks; None if there are none.
    """
    # Checked: torch 2.13.0; there since 2.8. No public function tells which hooks are set.
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


def is_transformed() -> bool:
    """Whether a transform such as ``vmap``, or forward-mode differentiation, is at work."""
    # Checked: torch 2.13.0. No public function tells.
    return (
        torch._C._are_functorch_transforms_active() or torch.autograd.forward_ad._current_level >= 0
    )


def storage_id(value: Tensor) -> int:
    """A number that is the same for all views of one tensor, while it lives.

    Args:
        value: The tensor.
    """
    # Checked: torch 2.13.0. The public data_ptr is 0 for every tensor without data.
    return value.untyped_storage()._cdata


def changes(value: Tensor) -> int:
    """How often a tensor was changed in place; 0 for those made for inference, which do not say.

    Args:
        value: The tensor.
    """
    # Checked: torch 2.13.0; in torch's documentation, but for its underscore.
    return 0 if value.is_inference() else value._version


def standard_gamma(concentration: Tensor, generator: torch.Generator | None) -> Tensor:
    """Independent draws from Gamma(concentration, 1), in the shape of ``concentration``.

    Args:
        concentration: Above 0, in any shape.
        generator: Where randomness comes from; None for torch's own.
    """
    # Checked: torch 2.13.0. torch.distributions.Gamma calls it, but takes no generator.
    return torch._standard_gamma(concentration, generator=generator)


def setup_as_compiled(fabric: "Fabric", module: nn.Module, optimizer: Optimizer) -> tuple[Any, Any]:
    """``fabric.setup``, with a compiled module left inside Fabric's wrapper.

    Args:
        fabric: What moves and wraps them.
        module: The module, compiled or not.
        optimizer: Its optimiser.

    Returns:
        Fabric's wrappers of both.
    """
    # Checked: lightning-fabric 2.6.6. By default Fabric compiles the wrapper instead, whose
    # inside could then not be called by forward_without_ban.
    return cast("tuple[Any, Any]", tuple(fabric.setup(module, optimizer, _reapply_compile=False)))


def forward_without_ban(fabric: "Fabric", wrapped: Any, *inputs: Any) -> Any:
    """Call a module that ``fabric.setup`` has wrapped, in the precision of the run.

    This is what calling the wrapper does, without its ban on gradients that do not come from
    ``fabric.backward``. The ban is there for losses that are scaled, as those of half precision
    are; then it stays.

    Args:
        fabric: What has wrapped it.
        wrapped: The wrapper.
        *inputs: What the module is called with.

    Returns:
        What the module gives out.
    """
    if getattr(fabric.strategy.precision, "scaler", None) is not None:
        return wrapped(*inputs)
    # Checked: lightning-fabric 2.6.6. The public wrapped.module is the one inside the
    # distributed wrapper, which would not average gradients.
    return call_in_precision(fabric, wrapped._forward_module, *inputs)


def call_in_precision(fabric: "Fabric", call: Callable[..., Any], *inputs: Any) -> Any:
    """Call anything in the precision of the run, as Fabric calls the modules that it has wrapped.

    Args:
        fabric: Knows the precision.
        call: What is called.
        *inputs: What it is called with.

    Returns:
        What the call gives.
    """
    # Checked: lightning-fabric 2.6.6. The public fabric.autocast() leaves inputs as they are.
    precision = fabric.strategy.precision
    converted = precision.convert_input(inputs)
    with precision.forward_context():
        outputs = call(*converted)
    return precision.convert_output(outputs)


def child_processes(fabric: "Fabric") -> list[Any]:
    """The processes, as :class:`subprocess.Popen`, that Fabric has started on this machine.

    Args:
        fabric: The processes.
    """
    # Checked: lightning-fabric 2.6.6, whose launcher is a private class.
    return list(getattr(fabric.strategy.launcher, "procs", ()))
