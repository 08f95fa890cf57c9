"""What a rule remembers between steps: parameters and buffers sized by the number of tasks."""

import torch
from torch import Tensor, nn

from lorpman.rules.base import Rule


def ensure_parameter(rule: Rule, name: str, start: Tensor) -> None:
    """Give ``rule`` the parameter ``name``; one of the same shape, from an earlier run, is kept.

    Args:
        rule: The rule that will own it.
        name: Its attribute.
        start: Its first value.
    """
    if not _has(rule, name, start):
        rule.register_parameter(name, nn.Parameter(start))


def ensure_buffer(rule: Rule, name: str, start: Tensor) -> None:
    """As :func:`ensure_parameter`, for a tensor that the run's optimiser must not touch.

    Args:
        rule: The rule that will own it.
        name: Its attribute.
        start: Its first value.
    """
    if not _has(rule, name, start):
        rule.register_buffer(name, start)


def _has(rule: Rule, name: str, start: Tensor) -> bool:
    known = getattr(rule, name, None)
    return known is not None and known.shape == start.shape


class BufferedAdam(nn.Module):
    """Adam for one tensor that only a rule changes, at a rate of its own.

    Its state is in buffers, so that a checkpoint holds it.

    Args:
        like: The tensor, for its shape, type and device.
    """

    mean: Tensor
    """The running mean of the gradients."""
    square: Tensor
    """The running mean of their squares."""
    steps: Tensor
    """How many gradients there were, ``[]``."""

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros_like(like))
        self.register_buffer("square", torch.zeros_like(like))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def change(self, gradient: Tensor, rate: float) -> Tensor:
        """One step of Adam: what to add to the tensor.

        Args:
            gradient: The tensor's gradient in this step.
            rate: The learning rate.
        """
        self.steps += 1
        # Adam's usual memories, 0.9 and 0.999.
        self.mean.lerp_(gradient, 0.1)
        self.square.lerp_(gradient.square(), 0.001)
        steps = int(self.steps)
        # Both start at zero; dividing by the share of real gradients in them takes that out.
        mean, square = self.mean / (1 - 0.9**steps), self.square / (1 - 0.999**steps)
        return -rate * mean / (square.sqrt() + 1e-8)
