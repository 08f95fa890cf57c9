"""Many small image files to one tensor of bytes."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.progress import track
from torch import Tensor

from lorpman.errors import UsageError


def decode_images(
    paths: Sequence[Path], out: Tensor, resample: Image.Resampling, progress: bool = False
) -> None:
    """Read images as RGB and resize them.

    Args:
        paths: The files.
        out: Bytes ``[n, 3, h, w]``, where they go; its size is theirs.
        resample: Pillow's filter.
        progress: Show a bar.

    Raises:
        UsageError: If some files cannot be read; all are tried before it names them.
    """
    size = (out.shape[3], out.shape[2])

    def read_one(i: int) -> str | None:
        try:
            with Image.open(paths[i]) as image:
                pixels = np.array(image.convert("RGB").resize(size, resample))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            return paths[i].name
        out[i] = torch.from_numpy(pixels).permute(2, 0, 1)
        return None

    # Pillow lets go of the interpreter lock while it decodes, so threads are enough.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = pool.map(read_one, range(len(paths)))
        shown = track(
            results,
            f"reading {len(paths)} images",
            len(paths),
            console=Console(stderr=True),
            transient=True,
            disable=not progress,
        )
        unreadable = [name for name in shown if name is not None]
    if unreadable:
        some = ", ".join(unreadable[:5]) + (", ..." if len(unreadable) > 5 else "")
        raise UsageError(
            f"{len(unreadable)} of {len(paths)} images in {paths[0].parent} cannot be read: "
            f"{some}; get them again or remove them"
        )
