"""PaMaL written down straightforwardly: every layer holds m modules and sums their weights.

This is how the public implementations of the method work: each layer that is to be combined
becomes a module with one member per task, whose forward pass sums the members' weights, one
product per member, and runs on the sum. The preference is set on all layers beforehand.
"""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lorpman.lab.bench.workload import Workload
from lorpman.preference import dirichlet
from lorpman.task import task_losses


class MemberLayer(nn.Module):
    """A linear layer or convolution as the weighted sum of ``count`` members.

    Args:
        layer: The layer of which every member starts as a copy.
        count: How many members there are.
    """

    def __init__(self, layer: nn.Linear | nn.Conv2d, count: int) -> None:
        super().__init__()
        self.members = nn.ModuleList(copy.deepcopy(layer) for _ in range(count))
        self.alpha = torch.full((count,), 1 / count)

    def forward(self, x: Tensor) -> Tensor:
        """The layer's output with the members' weighted sum as weights.

        Args:
            x: What the layer itself would take.
        """
        weight, bias = self._sum("weight"), self._sum("bias")
        layer = self.members[0]
        if isinstance(layer, nn.Conv2d):
            return F.conv2d(
                x, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups
            )
        return F.linear(x, weight, bias)

    def _sum(self, name: str) -> Tensor:
        first, *others = (
            getattr(m, name) * a for a, m in zip(self.alpha, self.members, strict=True)
        )
        return sum(others, start=first)


def with_member_layers(network: nn.Module, count: int) -> nn.Module:
    """``network`` with all its linear layers and convolutions replaced, in place.

    Args:
        network: The network, which is changed.
        count: How many members each layer gets.
    """
    # A list, since children are replaced on the way.
    for name, child in list(network.named_children()):
        if isinstance(child, nn.Linear | nn.Conv2d):
            setattr(network, name, MemberLayer(child, count))
        else:
            with_member_layers(child, count)
    return network


def member_layers_step(workload: Workload) -> Callable[[], None]:
    """A step of this PaMaL: one pass per preference of the window, back-propagated together.

    Regularisers are left out, and every layer with weights but the norms is combined.

    Args:
        workload: The network, its tasks, the mini-batch and the settings.

    Returns:
        A function that takes one step.
    """
    torch.manual_seed(0)
    m, training = len(workload.tasks), workload.spec.training
    network = with_member_layers(workload.network(), m).train()
    layers = [layer for layer in network.modules() if isinstance(layer, MemberLayer)]
    optimizer = training.make_optimizer()(network.parameters())
    x, targets = workload.plain_batch()

    def losses_at(alpha: Tensor) -> Tensor:
        for layer in layers:
            layer.alpha = alpha
        return alpha * task_losses(network(x), targets, workload.tasks)

    def step() -> None:
        optimizer.zero_grad()
        alphas = dirichlet(m, training.window, training.concentration)
        torch.stack([losses_at(alpha) for alpha in alphas]).sum().backward()
        optimizer.step()

    return step
