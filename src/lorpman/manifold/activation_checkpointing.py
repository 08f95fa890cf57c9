"""Activation checkpointing inside a network: refused, since it would be silently wrong.

A network has the weights of a preference only while it runs forward. What runs a part of it again
in the backward pass would find other weights there, and give their gradients.
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
    """Refuse hooks on saved tensors that are set inside this context, but not those around it."""
    if not torch.is_grad_enabled():
        yield
        return
    around = saved_tensor_hooks()
    if around is None:
        try:
            with disable_saved_tensors_hooks(_MESSAGE):
                yield
        except RuntimeError as error:
            if str(error) != _MESSAGE:
                raise
            raise UsageError(_MESSAGE) from None
        return
    # They cannot be switched off under the ones around; but a module shows when there are others.
    thread = threading.get_ident()

    def check(*_: Any) -> None:
        if threading.get_ident() == thread and saved_tensor_hooks() != around:
            raise UsageError(_MESSAGE)

    handle = register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        handle.remove()


def check_outputs(outputs: Any, inputs: Any) -> None:
    """Refuse outputs that were computed from ``inputs`` by the older kind of checkpointing,
    which sets no hooks."""
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
