"""Whether a network reads its weights where a manifold puts them: tried once, before training.

A manifold runs a network with other tensors in place of its parameters. A network that finds a
weight in another way, such as a list beside the parameter, would silently run with the wrong one:
training would reach nothing, or what is trained and what is handed out would be two networks.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from lorpman._torch import tree_leaves
from lorpman.errors import UsageError
from lorpman.manifold.base import Manifold
from lorpman.manifold.copying import at, attributes, copy_network
from lorpman.manifold.network_call import call_network

# As large as what training would make of weights that start at zero.
_DELTA = 0.1
_FIX = "read every weight as the parameter of its module when it is used"


def check_own_weights(model: Manifold, x: Any) -> None:
    """Refuse a manifold whose networks differ from its solutions, or cannot be copied once run.

    A copy is tried, with random numbers where a weight is still zero throughout, as deltas are at
    the start. The model, its statistics and its modes stay as they are; the caller keeps the
    random state. A network that stays as it came is not copied, for it may fill the memory; there
    it is only tried whether its weights are its own and its factors are used.

    Args:
        model: The manifold, on its device.
        x: What its network takes.

    Raises:
        UsageError: If it is so; the message names the module or the parameter.
    """
    if model.lends_weights:
        _check_lent_weights(model, x)
        return
    trial = copy_network(model).eval()
    with torch.no_grad():
        for parameter in trial.parameters():
            # With deltas of zero every preference gives the same network, and no difference would
            # show.
            if parameter.is_floating_point() and not parameter.any():
                parameter.normal_(0, _DELTA)
    shown = model.preferences()
    # The first and the last one; a manifold that shows one preference only has just that.
    for alpha in shown[[0, -1]][: len(shown)]:
        # Before it runs: what a network remembers must be the same on both sides.
        network = trial.solution(alpha)
        ours = _outputs(trial, x, alpha)
        _check_leaves(trial, ours, x)
        if _differ(ours, _outputs(network, x)):
            raise UsageError(
                f"{_where(trial, x, alpha)}, so that training would not reach what is handed out "
                f"(solution differs from the manifold at one preference); {_FIX}"
            )
    # In training a network may keep more than in use; evaluation would then fail to copy it.
    trial.train()(x, alpha)
    trial.solution(alpha)


def _check_lent_weights(model: Manifold, x: Any) -> None:
    network = _network(model)
    names = {id(p): name for name, p in network.named_parameters()}
    if (reading := _reading_elsewhere(network, names)) is not None:
        raise UsageError(f"{reading}, where factors do not reach it; {_FIX}")
    # The structure and what it remembers are copied, the parameters are the same.
    trial = copy.deepcopy(model, {id(p): p for p in model.parameters()}).eval()
    outputs = _outputs(trial, x, model.preferences()[0])
    _check_leaves(trial, outputs, x)
    trained = {id(p) for name, p in model.named_parameters() if id(p) not in names}
    if not any(id(leaf) in trained for leaf in _leaves_behind(outputs)):
        raise UsageError(
            f"{type(network).__name__} uses none of the layers that have factors, so that nothing "
            f"can be learned; {_FIX}"
        )


def _reading_elsewhere(network: nn.Module, names: Mapping[int, str]) -> str | None:
    """Which module holds on to which parameter in a plain attribute; None if none does."""
    for name, key, value in attributes(network):
        if id(value) in names:
            return f"{at(name)} reads parameter '{names[id(value)]}' through its attribute '{key}'"
    return None


def _outputs(module: nn.Module, x: Any, alpha: Tensor | None = None) -> list[Tensor]:
    """What a manifold or a network gives out, with the same random numbers in every call."""
    torch.manual_seed(0)
    given = call_network(module, x) if alpha is None else module(x, alpha)
    return [leaf for leaf in tree_leaves(given) if isinstance(leaf, Tensor)]


def _differ(ours: list[Tensor], theirs: list[Tensor]) -> bool:
    """Whether outputs differ by more than rounding."""
    for a, b in zip(ours, theirs, strict=True):
        if not a.is_floating_point():
            continue
        # Half of the digits: both sides add up in different orders, and a wrong weight is far off.
        tolerance = 3 * math.sqrt(torch.finfo(a.dtype).eps)
        a, b = a.detach().float(), b.detach().float()
        # Of the largest finite output: cancellation may leave small ones with few right digits.
        size = float(b.abs().nan_to_num(0.0, 0.0).max()) if b.numel() else 0.0
        if not torch.allclose(a, b, rtol=tolerance, atol=tolerance * size, equal_nan=True):
            return True
    return False


def _check_leaves(model: Manifold, outputs: list[Tensor], x: Any) -> None:
    """Refuse outputs that come from weights which are not the manifold's own."""
    # An input may have a gradient of its own; it is no weight.
    own = {id(p) for p in model.parameters()} | {id(leaf) for leaf in tree_leaves(x)}
    for leaf in _leaves_behind(outputs):
        if id(leaf) not in own:
            alike = [n for n, p in model.named_parameters() if torch.equal(p, leaf)]
            named = f", like parameter '{alike[0].removeprefix('network.')}'" if alike else ""
            raise UsageError(
                f"{type(_network(model)).__name__} reads a weight {list(leaf.shape)}{named} that "
                "is none of its parameters, perhaps through a function that was made with them; "
                f"{_FIX}"
            )


def _leaves_behind(outputs: list[Tensor]) -> Iterator[Tensor]:
    """The tensors with gradients that outputs were computed from."""
    seen: set[Node] = set()
    waiting = [output.grad_fn for output in outputs]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(variable := getattr(node, "variable", None), Tensor):
            yield variable
        waiting.extend(following for following, _ in node.next_functions)


def _where(model: Manifold, x: Any, alpha: Tensor) -> str:
    """Which module reads which weight elsewhere than in its place, as far as that shows."""
    network = _network(model)
    names = {id(p): name for name, p in network.named_parameters()}
    if (reading := _reading_elsewhere(network, names)) is not None:
        return reading
    ours, theirs = _recorded(network), _recorded(solution := model.solution(alpha))
    _outputs(model, x, alpha)
    _outputs(solution, x)
    # Not strict: where outputs differ, a network may take another path.
    for (name, a), (_, b) in zip(ours, theirs, strict=False):
        if _differ(a, b):
            return f"{at(name)} does not read its weights where they are"
    return f"{type(network).__name__} does not read its weights where they are"


def _recorded(network: nn.Module) -> list[tuple[str, list[Tensor]]]:
    """Grows by a module's name and its outputs whenever one of a network has run."""
    record: list[tuple[str, list[Tensor]]] = []

    def hook(name: str) -> Any:
        def note(_module: nn.Module, _inputs: Any, outputs: Any) -> None:
            record.append((name, [v for v in tree_leaves(outputs) if isinstance(v, Tensor)]))

        return note

    for name, module in network.named_modules():
        module.register_forward_hook(hook(name))
    return record


def _network(model: Manifold) -> nn.Module:
    """The network inside a manifold that has one, else the manifold."""
    inner = getattr(model.innermost, "network", None)
    return inner if isinstance(inner, nn.Module) else model
