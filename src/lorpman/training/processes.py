"""Several processes that train one model: what they must agree on."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def agree(fabric: "Fabric", value: Tensor, how: str = "mean") -> Tensor:
    """What all processes together say, the same on each of them.

    As with the other functions here, every process must call it: those that do wait for those that
    do not.

    Args:
        fabric: The processes.
        value: What this process says.
        how: "mean" or "max".

    Returns:
        A tensor like ``value``, on the CPU; ``value`` itself where there is one process.
    """
    if fabric.world_size == 1:
        return value
    # On the device: nccl exchanges nothing else.
    reduced: Tensor = fabric.strategy.all_reduce(value.to(fabric.device), reduce_op=how)
    return reduced.cpu()


def from_every_process(fabric: "Fabric", value: Any) -> list[Any]:
    """What each process has, in order of rank.

    Args:
        fabric: The processes.
        value: What this process has; it is pickled on the way.
    """
    if fabric.world_size == 1:
        return [value]
    gathered: list[Any] = [None] * fabric.world_size
    # It pickles, but only between the processes of one run.
    torch.distributed.all_gather_object(gathered, value)
    return gathered


def average_gradients(fabric: "Fabric", parameters: Iterable[nn.Parameter]) -> None:
    """Replace every gradient by its mean over all processes, in one message.

    Args:
        fabric: The processes.
        parameters: Those whose gradients are replaced. Which of them have one must be the same on
            every process.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return
    # One long message costs far less than many short ones.
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    mean: Tensor = fabric.strategy.all_reduce(flat, reduce_op="mean")
    parts = mean.split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))
