"""SegNet: a VGG-16 encoder and its mirror image, joined by the places of the pooled maxima."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.manifold.shared_bottom import SharedBottom

# Convolutions per level of the encoder, from the finest; the decoder has the same, mirrored.
_DEPTHS = (2, 2, 3, 3, 3)


class SegNet(nn.Module):
    """Images ``[n, 3, h, w]`` to features ``[n, width, h, w]``; ``h`` and ``w`` multiples of 32.

    Each of the five encoder levels ends with a max-pool of 2; the decoder level of the same
    size puts the values back where the maxima were. All ten levels end with a ReLU (names in
    ``stages``).

    Args:
        width: Channels of the finest level.

    Raises:
        UsageError: If the width is below 1.
    """

    stages = tuple(f"{half}.{level}" for half in ("encoder", "decoder") for level in range(5))

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        if width < 1:
            raise UsageError(f"SegNet needs width >= 1, got {width}")
        channels = (width, 2 * width, 4 * width, 8 * width, 8 * width)
        inputs = (3, *channels[:-1])
        levels = list(zip(inputs, channels, _DEPTHS, strict=True))
        self.out_features = width
        self.encoder = nn.ModuleList(_level([i] + [c] * d) for i, c, d in levels)
        # A decoder level narrows in its first convolution; the finest one stays at ``width``.
        narrowed = list(zip(channels, (width, *channels[:-1]), _DEPTHS, strict=True))
        self.decoder = nn.ModuleList(_level([c] + [i] * d) for c, i, d in reversed(narrowed))
        self.pool = nn.MaxPool2d(2, return_indices=True)

    def forward(self, x: Tensor) -> Tensor:
        """``[n, 3, h, w]`` to ``[n, width, h, w]``.

        Args:
            x: Images ``[n, 3, h, w]``.
        """
        places = []
        for level in self.encoder:
            x, place = self.pool(level(x))
            places.append(place)
        for level, place in zip(self.decoder, reversed(places), strict=True):
            x = level(unpool(x, place))
        return x


def unpool(x: Tensor, places: Tensor) -> Tensor:
    """``[n, c, h, w]`` to ``[n, c, 2h, 2w]``: each value to its place, zero elsewhere.

    A scatter, because torch's own unpooling has no rule for ``vmap``.

    Args:
        x: The values.
        places: Where each belongs, as a max-pool of 2 returns it, ``[n, c, h, w]``.
    """
    n, c, h, w = x.shape
    empty = x.new_zeros(n, c, 4 * h * w)
    return empty.scatter(2, places.flatten(2), x.flatten(2)).view(n, c, 2 * h, 2 * w)


def _level(channels: Sequence[int]) -> nn.Sequential:
    """3x3 convolution, batch norm and ReLU for each step of ``channels``."""
    layers: list[nn.Module] = []
    for i, o in pairwise(channels):
        layers += [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()]
    return nn.Sequential(*layers)


def segnet(outputs: Sequence[int] = (7, 1), width: int = 64) -> SharedBottom:
    """Images ``[n, 3, h, w]`` to one map ``[n, outputs[i], h, w]`` per task; 25,017,672 parameters.

    CityScapes has 7 classes and one depth. A head is a 3x3 and a 1x1 convolution with no
    activation between them.

    Args:
        outputs: The channels of each task's map.
        width: The channels of the first level, 64 in the paper; less is for small machines.
    """
    heads = (
        nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, out, 1))
        for out in outputs
    )
    return SharedBottom(SegNet(width), heads)
