"""Activation checkpointing inside a network: refused, since it would be silently wrong.

A network has the weights of a preference only while it runs forward. Activation checkpointing runs
parts of it again in the backward pass, with the weights that are there by then: the gradients would
be those of another network.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import Node, disable_saved_tensors_hooks
from torch.nn.modules.module import register_module_forward_pre_hook

from lorpman._torch import saved_tensor_hooks, tree_leaves
from lorpman.errors import UsageError

_MESSAGE = (
    "the network uses activation checkpointing, or other hooks on saved tensors, which would run "
    "it again without the weights at alpha; take them out of the network, put them around the "
    "whole manifold (checkpoint(model, x, alpha, use_reentrant=False)), or call it under "
    "torch.no_grad()"
)


@contextmanager
def without_recomputation() -> Iterator[None]:
    """Refuse hooks on saved tensors that are set inside this context, but not those around it.

    Raises:
        UsageError: If such a hook is set: the network recomputes activations, and cannot here.
    """
    # Without gradients there is no backward pass, so nothing is run again.
    if not torch.is_grad_enabled():
        yield
        return
    around = saved_tensor_hooks()
    if around is None:
        try:
            with disable_saved_tensors_hooks(_MESSAGE):
                yield
        except RuntimeError as error:
            # torch raises a RuntimeError with the text that it was given; others are the network's.
            if str(error) != _MESSAGE:
                raise
            raise UsageError(_MESSAGE) from None
        return
    # The caller has set hooks around the manifold, which is allowed. torch can then not forbid
    # further ones; so every module of the network checks before it runs that there are none.
    thread = threading.get_ident()

    def check(*_: Any) -> None:
        # The hook is global: models of other threads are none of its business.
        if threading.get_ident() == thread and saved_tensor_hooks() != around:
            raise UsageError(_MESSAGE)

    handle = register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        handle.remove()


def check_outputs(outputs: Any, inputs: Any) -> None:
    """Refuse outputs that were made with the older kind of checkpointing, which sets no hooks.

    Args:
        outputs: What the network gave, in any structure.
        inputs: What it was given; the search ends there, since what came before is not its work.

    Raises:
        UsageError: If a node of that kind is among the operations between them.
    """
    # What lies behind the inputs belongs to the caller, who may use checkpointing there.
    seen = {x.grad_fn for x in tree_leaves(inputs) if isinstance(x, Tensor)}
    waiting = [y.grad_fn for y in tree_leaves(outputs) if isinstance(y, Tensor)]
    while waiting:
        node: Node | None = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == "CheckpointFunctionBackward":
            raise UsageError(_MESSAGE)
        waiting.extend(following for following, _ in node.next_functions)
