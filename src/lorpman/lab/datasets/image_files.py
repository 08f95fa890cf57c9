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


def decode(
    paths: Sequence[Path], out: Tensor, resample: Image.Resampling, progress: bool = False
) -> None:
    """Reads RGB images, resized to those of ``out`` ``[n, 3, h, w]`` (bytes), into it.

    Files that cannot be read are all found before any is complained about.
    """
    size = (out.shape[3], out.shape[2])

    def one(i: int) -> str | None:
        try:
            with Image.open(paths[i]) as image:
                pixels = np.array(image.convert("RGB").resize(size, resample))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            return paths[i].name
        out[i] = torch.from_numpy(pixels).permute(2, 0, 1)
        return None

    # Pillow lets go of the interpreter lock while it decodes, so threads are enough.
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = pool.map(one, range(len(paths)))
        shown = track(
            results,
            f"reading {len(paths)} images",
            len(paths),
            console=Console(stderr=True),
            transient=True,
            disable=not progress,
        )
        bad = [name for name in shown if name is not None]
    if bad:
        some = ", ".join(bad[:5]) + (", ..." if len(bad) > 5 else "")
        raise UsageError(
            f"{len(bad)} of {len(paths)} images in {paths[0].parent} cannot be read: {some}; "
            "get them again or remove them"
        )
