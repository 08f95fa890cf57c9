"""Random changes of whole batches of images, drawn from a generator that is passed in."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def random_crop(images: Tensor, padding: int, generator: torch.Generator) -> Tensor:
    """Move every image by a random distance.

    Args:
        images: ``[n, c, h, w]``.
        padding: The largest distance, in pixels and in each direction.
        generator: Draws the distances.

    Returns:
        ``[n, c, h, w]``, with black moved in.
    """
    n, _, h, w = images.shape
    padded = functional.pad(images, [padding] * 4)
    # All positions at once as a view, so that one indexing cuts a whole batch.
    windows = padded.unfold(2, h, 1).unfold(3, w, 1)  # a view: [n, c, top, left, h, w]
    top, left = torch.randint(0, 2 * padding + 1, (2, n), generator=generator)
    return windows[torch.arange(n), :, top, left]


def random_flip(
    tensors: Sequence[Tensor], generator: torch.Generator, share: float = 0.5
) -> list[Tensor]:
    """Mirror some samples.

    Args:
        tensors: ``[n, ..., w]`` each, that belong together: images and their labels.
        generator: Draws the samples.
        share: The chance of each sample to be mirrored.

    Returns:
        The tensors, mirrored along their last axis for the same samples.
    """
    flipped = torch.rand(len(tensors[0]), generator=generator) < share
    return [torch.where(flipped.view(-1, *[1] * (t.dim() - 1)), t.flip(-1), t) for t in tensors]


def random_zoom(
    image: Tensor,
    label: Tensor,
    depth: Tensor,
    scales: Sequence[float],
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor]:
    """Zoom into one scene at a random place.

    Args:
        image: ``[3, h, w]``, interpolated bilinearly.
        label: ``[h, w]``; the nearest pixel counts, so that no class is invented.
        depth: ``[1, h, w]``, inverse; likewise.
        scales: One of them is drawn.
        generator: Draws scale and place.

    Returns:
        Image, label and depth of the same sizes. What is nearer fills more of the picture, so
        depth is divided by the scale.
    """
    height, width = image.shape[-2:]
    scale = scales[int(torch.randint(len(scales), (), generator=generator))]
    h, w = int(height / scale), int(width / scale)
    top = int(torch.randint(height - h + 1, (), generator=generator))
    left = int(torch.randint(width - w + 1, (), generator=generator))
    window = (..., slice(top, top + h), slice(left, left + w))
    size = (height, width)
    image = functional.interpolate(image[window][None], size, mode="bilinear", align_corners=True)
    # As floats, since torch interpolates no integers of 64 bits.
    label = functional.interpolate(label[window][None, None].float(), size, mode="nearest")
    depth = functional.interpolate(depth[window][None], size, mode="nearest")
    return image[0], label[0, 0].long(), depth[0] / scale
