"""ResNet-18 for 64x64 images: the network of UTKFace and CelebA."""

from collections.abc import Sequence

from torch import Tensor, nn

from lorpman.errors import UsageError
from lorpman.manifold.shared_bottom import SharedBottom


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut: ``[n, inputs, h, w]`` to ``[n, outputs, h/s, w/s]``.

    The channel dropout sits between the first ReLU and the second convolution.

    Args:
        inputs: Channels that come in.
        outputs: Channels that go out.
        stride: Of the first convolution, s above: 2 halves height and width.
        dropout: The part of the channels that is dropped while training.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.dropout = nn.Dropout2d(dropout)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, after its last ReLU.

        Args:
            x: Features ``[n, inputs, h, w]``.
        """
        inner = self.dropout(self.norm1(self.conv1(x)).relu())
        return (self.norm2(self.conv2(inner)) + self.shortcut(x)).relu()


class ResNet18(nn.Module):
    """Images ``[n, 3, size, size]`` to features ``[n, out_features]``, 2048 of them at full width.

    The stem is one 3x3 convolution of stride 1, without max-pooling; the end is an average pool
    of 4. ``stage1`` to ``stage4`` (names in ``stages``, output channels in ``channels``) end with
    a ReLU, so that a modulation of features can be put after each one.

    Dropout, if asked for, drops whole channels: ``dropout / 2`` after the stem, ``dropout`` in
    each block and after pooling. CelebA uses 0.5.

    Args:
        width: Channels of the first stage; each further stage has twice as many.
        size: Height and width of the images, a multiple of 32.
        dropout: The part of the channels that is dropped while training.

    Raises:
        UsageError: If the width is below 1, or the size no multiple of 32.
    """

    stages = ("stage1", "stage2", "stage3", "stage4")

    def __init__(self, width: int = 64, size: int = 64, dropout: float = 0.0) -> None:
        super().__init__()
        if width < 1 or size < 32 or size % 32:
            raise UsageError(
                f"ResNet18 needs width >= 1 and a size that is a multiple of 32, "
                f"got width={width}, size={size}"
            )
        self.channels = (width, 2 * width, 4 * width, 8 * width)
        self.out_features = 8 * width * (size // 32) ** 2
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Dropout2d(dropout / 2),
        )
        self.stage1 = _stage(width, width, 1, dropout)
        self.stage2 = _stage(width, 2 * width, 2, dropout)
        self.stage3 = _stage(2 * width, 4 * width, 2, dropout)
        self.stage4 = _stage(4 * width, 8 * width, 2, dropout)
        self.pool = nn.Sequential(nn.AvgPool2d(4), nn.Dropout2d(dropout), nn.Flatten())

    def forward(self, x: Tensor) -> Tensor:
        """``[n, 3, size, size]`` to ``[n, out_features]``.

        Args:
            x: Images ``[n, 3, size, size]``.
        """
        x = self.stage1(self.stem(x))
        return self.pool(self.stage4(self.stage3(self.stage2(x))))


def _stage(inputs: int, outputs: int, stride: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        Block(inputs, outputs, stride, dropout), Block(outputs, outputs, 1, dropout)
    )


def resnet18(
    outputs: Sequence[int], width: int = 64, size: int = 64, dropout: float = 0.0
) -> SharedBottom:
    """Images ``[n, 3, size, size]`` to one ``[n, outputs[i]]`` per task.

    UTKFace is ``outputs=(1, 2, 5)`` (11,185,224 parameters); CelebA is ``outputs=(2,) * 40`` with
    ``dropout=0.5`` (11,332,752).

    Args:
        outputs: The outputs of each task's head.
        width: The channels of the first stage, 64 in the paper; less is for small machines.
        size: The side of the images, a multiple of 32.
        dropout: The chance of whole channels to be dropped; see :class:`ResNet18`.
    """
    bottom = ResNet18(width, size, dropout)
    return SharedBottom(bottom, (nn.Linear(bottom.out_features, out) for out in outputs))
