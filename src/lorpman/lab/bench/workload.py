"""What is trained in the rows about steps: a preset, its network, and one mini-batch for it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lorpman.lab.datasets.process_shares import USUAL_BATCH
from lorpman.lab.datasets.splits import Arrays, Batch, batches
from lorpman.lab.methods.method import SharedPrefixes
from lorpman.lab.networks.vgg import TaskNormVGG16, channels_last_helps
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.manifold.shared_bottom import SharedBottom
from lorpman.task import Task

_VGG_POOL_AFTER = (1, 3, 6, 9)


class OneNormVGG16(nn.Module):
    """VGG-16 as everyone has it: images ``[n, 3, 32, 32]`` to features ``[n, 8 * width]``.

    The problem CIFAR-100 has one set of norm layers per task, since each task has images of its
    own. Here every task sees the same images, so there is one set.

    Args:
        width: The channels of the first layer, 64 in the paper.
    """

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        model = TaskNormVGG16(1, width)
        self.convs = model.convs
        self.norms = model.norms[0]
        self.average = model.average
        self.out_features = model.out_features

    def forward(self, x: Tensor) -> Tensor:
        """``[n, 3, 32, 32]`` to ``[n, out_features]``.

        Args:
            x: Images ``[n, 3, 32, 32]``.
        """
        assert isinstance(self.norms, nn.ModuleList)
        for layer, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = norm(conv(x)).relu()
            if layer in _VGG_POOL_AFTER:
                x = nn.functional.max_pool2d(x, 2)
        return self.average(x)


@dataclass(frozen=True)
class Workload:
    """A network, its tasks and a mini-batch, with the settings of a problem's preset."""

    spec: Spec
    """The preset for LORPMAN."""
    network: Callable[[], nn.Module]
    """Makes the network."""
    x: Tensor
    """The inputs of the mini-batch, ``[n, ...]``."""
    targets: list[Tensor]
    """One tensor ``[n]`` per task."""
    tasks: list[Task] = field(default_factory=list)
    """The problem's tasks."""
    shared: SharedPrefixes = None
    """Prefixes of the parameters that tasks share; None for the manifold's own choice."""
    channels_last: bool = True
    """Whether ``fit`` gets images with the channels of a pixel side by side."""

    def plain_batch(self) -> Batch:
        """The mini-batch as PyTorch lays images out (NCHW)."""
        return self.x, self.targets

    def fit_batch(self) -> Batch:
        """The mini-batch as a run's loader gives it to ``fit``: images mostly channels-last."""
        data = Arrays(self.x, self.targets, channels_last=self.channels_last)
        return next(iter(batches(data, len(self.x))))

    def manifold(self, method: str = "lorpman") -> Manifold:
        """A manifold over the network, with the preset's settings for ``method``.

        Args:
            method: The name of the method.
        """
        spec = self.spec_of(method)
        torch.manual_seed(0)
        return spec.method.manifold(self.network(), len(self.tasks), self.shared, spec.own)

    def spec_of(self, method: str) -> Spec:
        """The preset for another method.

        Args:
            method: The name of the method.
        """
        if method == self.spec.method.name:
            return self.spec
        return Spec.make(self.spec.problem, method, 0, {})


def from_preset(
    problem: str,
    shape: tuple[int, ...],
    classes: int,
    overrides: dict[str, Any] | None = None,
    network: Callable[[], nn.Module] | None = None,
    batch: int | None = None,
) -> Workload:
    """Make a workload of a problem's preset and a random mini-batch.

    Args:
        problem: Its name.
        shape: That of one input.
        classes: How many there are for each task.
        overrides: Settings on top of the preset.
        network: Another one than the problem's.
        batch: How many inputs there are instead of the preset's batch size.

    Returns:
        The workload, with inputs ``[batch, *shape]``.
    """
    spec = Spec.make(problem, "lorpman", 0, overrides or {})
    torch.manual_seed(0)
    tasks, count = spec.tasks(), batch or spec.training.batch_size or USUAL_BATCH
    return Workload(
        spec,
        network or partial(spec.problem.make_network, spec.data),
        torch.rand(count, *shape),
        [torch.randint(classes, (count,)) for _ in tasks],
        tasks,
        spec.problem.shared,
    )


def lenet(batch: int | None = None) -> Workload:
    """MultiMNIST: LeNet, 2 tasks, batch 256, b=4, r=8, orthogonality.

    Args:
        batch: How many images there are instead of the preset's 256.
    """
    return from_preset("multimnist", (1, 28, 28), 10, batch=batch)


def census() -> Workload:
    """Census: one hidden layer, 2 tasks, batch 256, b=2, r=8, both regularisers."""
    return from_preset("census", (468,), 2)


def vgg(width: int = 64, batch: int = 64) -> Workload:
    """CIFAR-100's settings: VGG-16, 20 tasks, b=2, r=8, with images that all tasks see.

    Args:
        width: The channels of the first layer.
        batch: How many images there are.
    """

    def network() -> nn.Module:
        bottom = OneNormVGG16(width)
        heads = [nn.Linear(bottom.out_features, 10) for _ in range(20)]
        return SharedBottom(bottom, heads)

    made = from_preset("cifar100", (3, 32, 32), 5, {"width": width}, network, batch)
    return replace(made, channels_last=channels_last_helps(width))


def resnet(width: int = 64, batch: int = 32) -> Workload:
    """CelebA: ResNet-18 at 64x64, 40 tasks, b=3, r=32.

    Args:
        width: The channels of the first stage.
        batch: How many images there are.
    """
    return from_preset("celeba", (3, 64, 64), 2, {"width": width}, batch=batch)
