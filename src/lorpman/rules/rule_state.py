"""Numbers of a rule's own, made when the number of tasks is known."""

import torch
from torch import Tensor, nn

from lorpman.rules.base import Rule


def sized(rule: Rule, name: str, start: Tensor) -> None:
    """Make the parameter ``name``; one of the right size, from an earlier run, is kept."""
    known = getattr(rule, name, None)
    if known is None or known.shape != start.shape:
        rule.register_parameter(name, nn.Parameter(start))


def sized_buffer(rule: Rule, name: str, start: Tensor) -> None:
    """Make the buffer ``name``, which the run's optimiser does not touch, likewise."""
    known = getattr(rule, name, None)
    if known is None or known.shape != start.shape:
        rule.register_buffer(name, start)


class OwnAdam(nn.Module):
    """Adam for one tensor of a rule's own, at a rate of its own; its state is in buffers, so
    that a checkpoint holds it."""

    mean: Tensor
    square: Tensor
    steps: Tensor

    def __init__(self, like: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros_like(like))
        self.register_buffer("square", torch.zeros_like(like))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def change(self, gradient: Tensor, rate: float) -> Tensor:
        """What to add to the tensor."""
        self.steps += 1
        self.mean.lerp_(gradient, 0.1)
        self.square.lerp_(gradient.square(), 0.001)
        steps = int(self.steps)
        mean, square = self.mean / (1 - 0.9**steps), self.square / (1 - 0.999**steps)
        return -rate * mean / (square.sqrt() + 1e-8)
