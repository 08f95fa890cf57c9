"""UTKFace: age, gender and race of a face, from its picture.

The labels are in the file names, ``age_gender_race_time.jpg``. Images are resized to 64x64. Age
is standardised with mean and deviation of the whole set, as the published numbers' code does.
A few names of the original set are malformed. Those that lack one of the three numbers (as in
``61_1_20170109142408075.jpg.chip.jpg``) are dropped, which leaves 23,705 images;
``odd_names="error"`` names them instead. Those that are odd only behind the numbers are used.
"""

import re
from pathlib import Path
from typing import Literal

import torch
from PIL import Image
from torch import Tensor

from lorpman.errors import UsageError, unknown
from lorpman.lab.datasets.image_files import decode_images
from lorpman.lab.datasets.prepared_cache import (
    Preparation,
    Tensors,
    cached_in_place,
    listing_checksum,
)
from lorpman.lab.datasets.splits import Arrays, Splits, bytes_to_unit, random_partition

RACES = ("White", "Black", "Asian", "Indian", "other")
VERSION = 1
GENDERS = ("male", "female")
RACES = ("White", "Black", "Asian", "Indian", "other")
"""What the dataset's authors call its labels, in their order."""
_NAME = re.compile(r"(\d{1,3})_([01])_([0-4])_.*\.jpe?g", re.IGNORECASE)


def load(
    root: Path,
    odd_names: Literal["drop", "error"] = "drop",
    size: int = 64,
    limit: int | None = None,
    seed: int = 42,
    progress: bool = False,
) -> Splits:
    """Inputs ``[n, 3, 64, 64]`` in 0..1; targets age ``[n]``, gender ``[n]``, race ``[n]``.

    The images are split 70/10/20 at random.

    Args:
        root: The data directory; images lie anywhere below ``utkface``.
        odd_names: What to do with files whose names do not hold three labels.
        size: The images' side.
        limit: Use only so many images, chosen at random; for small machines.
        seed: Of the choice and the split; the default is the one that all results use.
        progress: Show a bar while the images are read for the first time.

    Returns:
        The three splits.

    Raises:
        UsageError: If there are no images, some cannot be read, or the limit is out of range.
    """
    paths, labels = _labelled(Path(root), odd_names)
    preparation = Preparation("utkface", VERSION, listing_checksum(paths), {"size": size})

    def fill(out: Tensors) -> None:
        decode_images(paths, out["x"], Image.Resampling.BILINEAR, progress)

    layout = {"x": ((len(paths), 3, size, size), torch.uint8)}
    x = cached_in_place(preparation, layout, fill)["x"]
    age = labels[:, 0].double()
    spread = age.std().clamp(min=1e-6) if len(age) > 1 else torch.ones(())
    targets = [((age - age.mean()) / spread).float(), labels[:, 1], labels[:, 2]]
    generator = torch.Generator().manual_seed(seed)
    chosen = _choose(len(paths), limit, generator)
    parts = random_partition(len(chosen), (0.7, 0.1, 0.2), generator)
    note = f"UTKFace: {len(chosen)} of {len(paths)} images" if limit else ""
    train, validation, test = (Arrays(x, targets, chosen[p], bytes_to_unit) for p in parts)
    return Splits(train, validation, test, note=note)


def _choose(n: int, limit: int | None, generator: torch.Generator) -> Tensor:
    if limit is None:
        return torch.arange(n)
    if not 0 < limit <= n:
        raise UsageError(f"limit must lie between 1 and {n} images, got {limit}")
    return torch.randperm(n, generator=generator)[:limit].sort().values


def _labelled(root: Path, odd_names: str) -> tuple[list[Path], Tensor]:
    """The image files in the order of their names, and their labels ``[n, 3]``."""
    if odd_names not in ("drop", "error"):
        raise unknown("value of odd_names", odd_names, ("drop", "error"))
    folder = root / "utkface"
    images = sorted(p for p in folder.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    matches = [_NAME.fullmatch(path.name) for path in images]
    odd = [path.name for path, match in zip(images, matches, strict=True) if match is None]
    if odd and odd_names == "error":
        raise UsageError(
            f"{len(odd)} files in {folder} are not named age_gender_race_time.jpg: "
            f"{', '.join(odd[:5])}; remove them or pass odd_names='drop'"
        )
    paths = [path for path, match in zip(images, matches, strict=True) if match is not None]
    if not paths:
        raise UsageError(
            f"no images named age_gender_race_time.jpg below {folder}; "
            f"run: lorpman data utkface --data {root}"
        )
    labels = [[int(number) for number in match.groups()] for match in matches if match is not None]
    return paths, torch.tensor(labels)
