"""VGG-16 for CIFAR-100, with shared convolutions and one set of norm layers per task."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.manifold.shared_bottom import Inputs, check_one_per_task

# Output channels of the 13 convolutions, in units of width / 64; a pool follows where marked.
_CHANNELS = (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512)
_POOL_AFTER = (1, 3, 6, 9)


def channels_last_helps(width: int) -> bool:
    """Whether images of 32 x 32 pixels pass faster with their channels side by side in memory.

    Measured on a CPU (``benchmarks/choices.py``): faster at width 16, alike at 32, slower at 64.

    Args:
        width: The channels of the first convolution.
    """
    return width < 64


class TaskNormVGG16(nn.Module):
    """Per-task images ``[n_i, 3, 32, 32]`` to per-task features ``[n_i, 8 * width]``.

    The 13 convolutions (``convs``) are shared; task ``i`` is normalised by a set of batch norms
    of its own (``norms.i``). Four max-pools, then a global average; their names are in
    ``stages``, the channels they see in ``channels``.

    Args:
        num_tasks: How many tasks there are.
        width: The channels of the first convolution.

    Raises:
        UsageError: If one of them is below 1.
    """

    stages = ("pools.0", "pools.1", "pools.2", "pools.3", "average")

    def __init__(self, num_tasks: int, width: int = 64) -> None:
        super().__init__()
        if num_tasks < 1 or width < 1:
            raise UsageError(
                f"VGG-16 needs num_tasks >= 1 and width >= 1, got {num_tasks} and {width}"
            )
        channels = [max(1, c * width // 64) for c in _CHANNELS]
        pairs = zip([3, *channels[:-1]], channels, strict=True)
        self.out_features = channels[-1]
        self.convs = nn.ModuleList(nn.Conv2d(i, o, 3, padding=1) for i, o in pairs)
        self.norms = nn.ModuleList(
            nn.ModuleList(nn.BatchNorm2d(c) for c in channels) for _ in range(num_tasks)
        )
        self.channels = (*(channels[layer] for layer in _POOL_AFTER), channels[-1])
        self.pools = nn.ModuleList(nn.MaxPool2d(2) for _ in _POOL_AFTER)
        self.average = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def forward(self, x: Sequence[Tensor]) -> Sequence[Tensor]:
        """One batch per task, through the convolutions together and the norms apart.

        Args:
            x: Images ``[n_i, 3, 32, 32]`` for each task i.

        Returns:
            Features ``[n_i, out_features]`` for each task.
        """
        sizes = [len(part) for part in x]
        # Together, since 20 small batches would leave a convolution mostly waiting.
        h = torch.cat(list(x))
        for layer, conv in enumerate(self.convs):
            parts = conv(h).split(sizes)
            normed = [norms[layer](p) for norms, p in zip(self._sets(), parts, strict=True)]
            h = torch.cat(normed).relu()
            if layer in _POOL_AFTER:
                h = self.pools[_POOL_AFTER.index(layer)](h)
        return self.average(h).split(sizes)

    def _sets(self) -> list[nn.ModuleList]:
        return [norms for norms in self.norms if isinstance(norms, nn.ModuleList)]


class TaskNormNetwork(nn.Module):
    """A bottom that tells tasks apart (one batch in, one out, per task), and one head per task.

    It differs from ``SharedBottom`` in that the bottom always gets the list of batches: one
    tensor ``[n, ...]`` stands for the same batch for every task.

    Args:
        bottom: Takes and gives a sequence with one batch per task.
        heads: One module per task, on the features of its batch.
    """

    def __init__(self, bottom: nn.Module, heads: Sequence[nn.Module]) -> None:
        super().__init__()
        self.bottom = bottom
        self.heads = nn.ModuleList(heads)

    def forward(self, x: Inputs) -> list[Tensor]:
        """``[n, ...]`` or one ``[n_i, ...]`` per task, to one output per task.

        Args:
            x: One batch for all tasks, or one for each.
        """
        parts = [x] * len(self.heads) if isinstance(x, Tensor) else x
        check_one_per_task(parts, len(self.heads))
        features = self.bottom(parts)
        return [head(part) for head, part in zip(self.heads, features, strict=True)]


def vgg16(num_tasks: int = 20, num_classes: int = 10, width: int = 64) -> TaskNormNetwork:
    """One batch ``[n_i, 3, 32, 32]`` per task to one ``[n_i, num_classes]`` per task.

    Only the convolutions are shared by the tasks: pass ``shared=["bottom.convs"]`` to a manifold.
    The published counts (296.515M, 26.358M, 15.019M) imply heads of 10 classes although each
    task has 5, so 10 is the default (14,986,248 parameters); ``num_classes=5`` is the plain
    reading.

    Args:
        num_tasks: How many tasks there are.
        num_classes: Outputs of every head.
        width: The channels of the first convolution, 64 in the paper; less is for small machines.
    """
    bottom = TaskNormVGG16(num_tasks, width)
    heads = [nn.Linear(bottom.out_features, num_classes) for _ in range(num_tasks)]
    return TaskNormNetwork(bottom, heads)
