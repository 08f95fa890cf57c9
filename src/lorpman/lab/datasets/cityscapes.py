"""CityScapes: the class of every pixel (7 classes) and its inverse depth, from a street scene.

The files are the preprocessed ones of MTAN: ``train`` and ``val``, each with the folders
``image``, ``label_7`` and ``depth`` of arrays ``0.npy``, ``1.npy`` and so on, 128x256. Pixels of
class -1 are void, those of depth 0 unknown. A cache joins them into memory-mapped tensors.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.lab.datasets.augmentation import random_flip, random_zoom
from lorpman.lab.datasets.file_errors import damaged_file, missing_file
from lorpman.lab.datasets.prepared_cache import (
    Preparation,
    Tensors,
    cached_in_place,
    listing_checksum,
)
from lorpman.lab.datasets.splits import Arrays, Batch, Splits

NUM_CLASSES = 7
SCALES = (1.0, 1.2, 1.5)
FOLDERS = ("image", "label_7", "depth")
VERSION = 1


def load(
    root: Path,
    validation: int | None = 475,
    seed: int = 42,
    augment: bool = True,
    limit: int | None = None,
) -> Splits:
    """Inputs ``[n, 3, 128, 256]``; targets class ``[n, 128, 256]``, depth ``[n, 1, 128, 256]``.

    Args:
        root: The data directory; the files are below ``cityscapes``.
        validation: Scenes that are taken from the 2,975 for training. With None, the test
            scenes serve for validation too, as in one of the two published protocols; ``note``
            says so.
        seed: Chooses them, and starts the generator of the augmentation.
        augment: Zoom (by 1, 1.2 or 1.5) and mirror training scenes at random.
        limit: Train on so many scenes, for small machines.

    Returns:
        The three splits.

    Raises:
        UsageError: If a file is missing or damaged, or a number is out of range.
    """
    folder = Path(root) / "cityscapes"
    seen, unseen = (_tensors(folder / name, Path(root)) for name in ("train", "val"))
    n = len(seen["image"])
    if validation is not None and not 0 < validation < n:
        raise UsageError(f"validation must lie between 1 and {n - 1} scenes, got {validation}")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=generator)
    kept, held = order[: n - (validation or 0)], order[n - (validation or 0) :]
    if limit is not None and not 0 < limit <= len(kept):
        raise UsageError(f"limit must lie between 1 and {len(kept)} scenes, got {limit}")
    test = _arrays(unseen, None, PrepareScenes())
    return Splits(
        _arrays(seen, kept[:limit].sort().values, PrepareScenes(generator if augment else None)),
        test if validation is None else _arrays(seen, held.sort().values, PrepareScenes()),
        test,
        note="CityScapes: validated on the test scenes" if validation is None else "",
    )


@dataclass
class PrepareScenes:
    """A transform: labels to integers, and everything zoomed and mirrored if it can draw."""

    generator: torch.Generator | None = None
    """Draws the augmentation; None for none."""

    def __call__(self, x: Tensor, targets: list[Tensor]) -> Batch:
        label, depth = targets
        label = label.long()
        if self.generator is None:
            return x, [label, depth]
        zoomed = [
            random_zoom(*scene, SCALES, self.generator)
            for scene in zip(x, label, depth, strict=True)
        ]
        stacked = [torch.stack(parts) for parts in zip(*zoomed, strict=True)]
        x, label, depth = random_flip(stacked, self.generator)
        return x, [label, depth]


def _arrays(tensors: Tensors, rows: Tensor | None, transform: PrepareScenes) -> Arrays:
    return Arrays(tensors["image"], [tensors["label"], tensors["depth"]], rows, transform)


def _tensors(folder: Path, root: Path) -> Tensors:
    """All scenes of one folder, memory-mapped."""
    n = len(list((folder / "image").glob("*.npy")))
    if n == 0:
        raise missing_file(folder / "image" / "0.npy", "cityscapes", root)
    paths = [[folder / kind / f"{i}.npy" for kind in FOLDERS] for i in range(n)]
    absent = next((p for scene in paths for p in scene if not p.is_file()), None)
    if absent is not None:
        raise missing_file(absent, "cityscapes", root)
    source = listing_checksum(path for scene in paths for path in scene)
    height, width = _read(paths[0][1], 2).shape

    def fill(out: Tensors) -> None:
        for i, scene in enumerate(paths):
            image, label, depth = _scene(scene, height, width)
            out["image"][i], out["label"][i], out["depth"][i] = image, label, depth

    layout = {
        "image": ((n, 3, height, width), torch.float32),
        "label": ((n, height, width), torch.int8),
        "depth": ((n, 1, height, width), torch.float32),
    }
    return cached_in_place(Preparation(f"cityscapes-{folder.name}", VERSION, source), layout, fill)


def _scene(paths: list[Path], height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Image ``[3, h, w]``, label ``[h, w]`` and depth ``[1, h, w]`` of one scene."""
    arrays = [_read(path, dims) for path, dims in zip(paths, (3, 2, 3), strict=True)]
    shapes = ((height, width, 3), (height, width), (height, width, 1))
    for path, array, shape in zip(paths, arrays, shapes, strict=True):
        if array.shape != shape:
            raise damaged_file(path, f"has shape {array.shape}, expected {shape}")
        if not np.isfinite(array).all():
            raise damaged_file(path, "holds values that are not finite")
    image, label, depth = (torch.from_numpy(array) for array in arrays)
    if label.min() < -1 or label.max() >= NUM_CLASSES:
        classes = f"{int(label.min())}..{int(label.max())}"
        raise damaged_file(paths[1], f"has classes {classes}, expected -1..{NUM_CLASSES - 1}")
    return image.permute(2, 0, 1), label, depth.permute(2, 0, 1)


def _read(path: Path, dimensions: int) -> np.ndarray:
    try:
        # A pickle inside a downloaded file could run any code.
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise damaged_file(path, f"is not a whole npy file ({error})") from error
    if (
        not isinstance(array, np.ndarray)
        or array.ndim != dimensions
        or array.dtype.kind not in "iuf"
    ):
        raise damaged_file(path, f"does not hold numbers in {dimensions} dimensions")
    return array
