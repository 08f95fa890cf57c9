"""CelebA: 40 yes-or-no attributes of a face, from its picture, with the official partition.

Images are shrunk once to 64x64 and kept as bytes in a memory-mapped cache (2.5 GB in full).
Two ways of preparing them are in use: ``rgb`` (bilinear, scaled to 0..1) and ``bgr`` (nearest
pixel, blue first, the training mean removed, divided by 255).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from lorpman.errors import UsageError, unknown
from lorpman.lab.datasets.file_errors import damaged_file, missing_file
from lorpman.lab.datasets.image_files import decode_images
from lorpman.lab.datasets.prepared_cache import (
    Preparation,
    Tensors,
    cached_in_place,
    content_checksum,
    listing_checksum,
)
from lorpman.lab.datasets.splits import Arrays, Batch, Splits, bytes_to_unit

_ATTRIBUTE_NAMES = """
    5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose
    Black_Hair Blond_Hair Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee
    Gray_Hair Heavy_Makeup High_Cheekbones Male Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard
    Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks Sideburns Smiling Straight_Hair
    Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace Wearing_Necktie Young
"""
ATTRIBUTES = tuple(_ATTRIBUTE_NAMES.split())
NUM_TASKS = len(ATTRIBUTES)
# The mean that Sener and Koltun's loader removes.
BGR_MEAN = (73.158, 82.909, 72.392)
PARTS = ("train", "validation", "test")
VERSION = 1
_RESAMPLING = {"rgb": Image.Resampling.BILINEAR, "bgr": Image.Resampling.NEAREST}


def load(
    root: Path,
    colours: Literal["rgb", "bgr"] = "rgb",
    size: int = 64,
    limit: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Splits:
    """Inputs ``[n, 3, 64, 64]``, targets 40 times ``[n]`` of 0 and 1, from ``root/celeba``.

    Args:
        root: The data directory.
        colours: How images are prepared, see above.
        size: The images' side.
        limit: Use only so many images, chosen at random in each part of the official partition
            in proportion; for small machines. Only these are read.
        seed: Of that choice.
        progress: Show a bar while the images are read for the first time.

    Returns:
        The three splits.

    Raises:
        UsageError: If a file is missing or damaged, or the limit is out of range.
    """
    if colours not in _RESAMPLING:
        raise unknown("colours", colours, _RESAMPLING)
    folder = Path(root) / "celeba"
    names, labels, part = _lists(folder, Path(root))
    chosen = _choose(part, limit, seed)
    paths = [folder / "img_align_celeba" / names[i] for i in chosen.tolist()]
    x = _images(paths, folder, Path(root), colours, size, progress)
    splits = [
        # Labels stay one tensor up to the transform: a batch is cut by one indexing, not by 40.
        Arrays(x, [labels[chosen]], (part[chosen] == i).nonzero()[:, 0], PrepareFaces(colours))
        for i in range(3)
    ]
    note = f"CelebA: {len(chosen)} of {len(names)} images" if limit is not None else ""
    return Splits(*splits, note=note)


@dataclass
class PrepareFaces:
    """A transform: bytes to floats, and labels ``[n, 40]`` to 40 times ``[n]``."""

    colours: str
    """One of the two ways to prepare them, ``rgb`` or ``bgr``."""

    def __call__(self, x: Tensor, targets: list[Tensor]) -> Batch:
        each = list(targets[0].long().unbind(1))
        if self.colours == "rgb":
            return bytes_to_unit(x, each)
        mean = torch.tensor(BGR_MEAN).view(1, 3, 1, 1)
        return (x.flip(1).to(torch.float32) - mean) / 255, each


def _images(
    paths: list[Path], folder: Path, root: Path, colours: str, size: int, progress: bool
) -> Tensor:
    lists = [folder / "list_attr_celeba.txt", folder / "list_eval_partition.txt"]
    try:
        # 200,000 pictures are too many to read for a checksum; their sizes and times must do.
        source = content_checksum(lists) + listing_checksum(paths)
    except FileNotFoundError as error:
        raise missing_file(Path(error.filename), "celeba", root) from None
    preparation = Preparation("celeba", VERSION, source, {"colours": colours, "size": size})

    def fill(out: Tensors) -> None:
        decode_images(paths, out["x"], _RESAMPLING[colours], progress)

    layout = {"x": ((len(paths), 3, size, size), torch.uint8)}
    return cached_in_place(preparation, layout, fill)["x"]


def _choose(part: Tensor, limit: int | None, seed: int) -> Tensor:
    """The images to use, in the order of their names."""
    if limit is None:
        return torch.arange(len(part))
    if not 0 < limit <= len(part):
        raise UsageError(f"limit must lie between 1 and {len(part)} images, got {limit}")
    generator = torch.Generator().manual_seed(seed)
    taken = []
    for i in range(3):
        mine = (part == i).nonzero()[:, 0]
        # At least one, since no split may be empty.
        count = max(1, len(mine) * limit // len(part))
        taken.append(mine[torch.randperm(len(mine), generator=generator)[:count]])
    return torch.cat(taken).sort().values


def _lists(folder: Path, root: Path) -> tuple[list[str], Tensor, Tensor]:
    """Names, labels ``[n, 40]`` of 0 and 1, and the part 0, 1 or 2 of each image ``[n]``."""
    path = folder / "list_attr_celeba.txt"
    cells = _words(path, skip=2, width=NUM_TASKS + 1, root=root)
    signs = _integers(cells[:, 1:], path)
    if not np.isin(signs, (-1, 1)).all():
        raise damaged_file(path, "holds attributes other than -1 and 1")
    parts = folder / "list_eval_partition.txt"
    rows = _words(parts, skip=0, width=2, root=root)
    if len(rows) != len(cells) or (rows[:, 0] != cells[:, 0]).any():
        raise damaged_file(parts, f"does not name the {len(cells)} images of {path.name} in order")
    part = _integers(rows[:, 1], parts)
    if not np.isin(part, (0, 1, 2)).all():
        raise damaged_file(parts, "holds parts other than 0, 1 and 2")
    names = cells[:, 0].tolist()
    return names, torch.from_numpy((signs > 0).astype(np.uint8)), torch.from_numpy(part)


def _words(path: Path, skip: int, width: int, root: Path) -> np.ndarray:
    if not path.is_file():
        raise missing_file(path, "celeba", root)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()[skip:]
    rows = [line.split() for line in lines if line.strip()]
    wrong = next((i for i, row in enumerate(rows) if len(row) != width), None)
    if not rows or wrong is not None:
        line = skip + 1 + (wrong or 0)
        raise damaged_file(path, f"needs a name and {width - 1} numbers in line {line}")
    return np.array(rows)


def _integers(cells: np.ndarray, path: Path) -> np.ndarray:
    try:
        return cells.astype(np.int64)
    except ValueError as error:
        raise damaged_file(path, f"holds something else than numbers ({error})") from error
