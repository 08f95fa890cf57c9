"""CIFAR-100 as 20 tasks: which of its five classes does an image of this superclass show?

Every task has images of its own, 2,500 to train on and 500 to test; a batch is a list with one
batch of images per task. Fine labels become 0..4 within their superclass, in ascending order.
The images stay bytes in memory and are normalised batch by batch; the original files are already
arrays, so there is nothing to cache.
"""

import io
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.lab.datasets.augmentation import random_crop, random_flip
from lorpman.lab.datasets.file_errors import damaged_file, missing_file
from lorpman.lab.datasets.splits import Batch, Splits, TaskArrays

NUM_TASKS = 20
CLASSES_PER_TASK = 5
# Of the training images, by colour.
MEAN = (0.5071, 0.4867, 0.4408)
DEVIATION = (0.2675, 0.2565, 0.2761)
PADDING = 4
_NAMES = """
    aquatic mammals: beaver, dolphin, otter, seal, whale
    fish: aquarium fish, flatfish, ray, shark, trout
    flowers: orchid, poppy, rose, sunflower, tulip
    food containers: bottle, bowl, can, cup, plate
    fruit and vegetables: apple, mushroom, orange, pear, sweet pepper
    household electrical devices: clock, keyboard, lamp, telephone, television
    household furniture: bed, chair, couch, table, wardrobe
    insects: bee, beetle, butterfly, caterpillar, cockroach
    large carnivores: bear, leopard, lion, tiger, wolf
    large man-made outdoor things: bridge, castle, house, road, skyscraper
    large natural outdoor scenes: cloud, forest, mountain, plain, sea
    large omnivores and herbivores: camel, cattle, chimpanzee, elephant, kangaroo
    medium-sized mammals: fox, porcupine, possum, raccoon, skunk
    non-insect invertebrates: crab, lobster, snail, spider, worm
    people: baby, boy, girl, man, woman
    reptiles: crocodile, dinosaur, lizard, snake, turtle
    small mammals: hamster, mouse, rabbit, shrew, squirrel
    trees: maple, oak, palm, pine, willow
    vehicles 1: bicycle, bus, motorcycle, pickup truck, train
    vehicles 2: lawn mower, rocket, streetcar, tank, tractor
"""
CLASSES = {
    name.strip(): tuple(part.strip() for part in classes.split(","))
    for name, _, classes in (line.partition(":") for line in _NAMES.strip().splitlines())
}
"""The classes of every task; the dataset numbers all of them by the alphabet."""
TASKS = tuple(CLASSES)


def load(
    root: Path,
    validation: int = 250,
    seed: int = 0,
    augment: bool = True,
    train: int | None = None,
    test: int | None = None,
    channels_last: bool = True,
) -> Splits:
    """Inputs 20 times ``[n, 3, 32, 32]``, targets 20 times ``[n]``, from ``root/cifar100``.

    Args:
        root: The data directory; the files are in ``cifar100/cifar-100-python``.
        validation: Images of each task that are taken from its 2,500 for training.
        seed: Chooses them, and starts the generator of the augmentation.
        augment: Move (by up to 4 pixels) and mirror training images at random.
        train: Use only so many training images of each task, and
        test: So many test images; for small machines.
        channels_last: How batches lay images out.

    Returns:
        The three splits; a sample of one of them is an image of every task.

    Raises:
        UsageError: If a file is missing or damaged, or ``validation`` is out of range.
    """
    folder = Path(root) / "cifar100" / "cifar-100-python"
    x, target, rows = _read(folder / "train", Path(root))
    if not 0 < validation < rows.shape[1]:
        raise UsageError(
            f"validation must lie between 1 and {rows.shape[1] - 1} images per task, "
            f"got {validation}"
        )
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.stack([row[torch.randperm(len(row), generator=generator)] for row in rows])
    held, kept = mixed[:, :validation], mixed[:, validation:][:, :train]
    plain = PrepareImages()
    unseen, labels, places = _read(folder / "test", Path(root))
    reduced = [f"{n} {what}" for n, what in ((train, "training"), (test, "test")) if n is not None]
    return Splits(
        TaskArrays(x, target, kept, PrepareImages(generator) if augment else plain, channels_last),
        TaskArrays(x, target, held, plain, channels_last),
        TaskArrays(unseen, labels, places[:, :test], plain, channels_last),
        note=f"CIFAR-100: {' and '.join(reduced)} images of each task" if reduced else "",
    )


@dataclass
class PrepareImages:
    """A transform: bytes ``[n, 3, 32, 32]`` to normalised floats, augmented if it can draw."""

    generator: torch.Generator | None = None
    """Draws the augmentation; None for none."""

    def __call__(self, x: Tensor, targets: list[Tensor]) -> Batch:
        if self.generator is not None:
            x = random_crop(x, PADDING, self.generator)
            (x,) = random_flip([x], self.generator)
        mean = torch.tensor(MEAN).view(1, 3, 1, 1) * 255
        deviation = torch.tensor(DEVIATION).view(1, 3, 1, 1) * 255
        return (x.to(torch.float32) - mean) / deviation, targets


def _read(path: Path, root: Path) -> tuple[Tensor, Tensor, Tensor]:
    """Images ``[n, 3, 32, 32]``, labels 0..4 ``[n]``, the rows of each task ``[20, n / 20]``."""
    if not path.is_file():
        raise missing_file(path, "cifar100", root)
    content = unpickle(path)
    try:
        images = content[b"data"]
        fine, coarse = (np.asarray(content[k]) for k in (b"fine_labels", b"coarse_labels"))
        x = torch.from_numpy(images.reshape(-1, 3, 32, 32))
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise damaged_file(
            path, f"does not hold images and their two labels ({error!r})"
        ) from error
    if x.dtype != torch.uint8 or not len(x) == len(fine) == len(coarse) > 0:
        raise damaged_file(path, f"holds {len(x)} images, {len(fine)} and {len(coarse)} labels")
    return x, *_group(torch.from_numpy(fine), torch.from_numpy(coarse), path)


def _group(fine: Tensor, coarse: Tensor, path: Path) -> tuple[Tensor, Tensor]:
    """Labels within each task ``[n]``, and the rows of each task ``[20, n / 20]``."""
    target = torch.zeros_like(fine)
    rows = []
    for task in range(NUM_TASKS):
        mine = (coarse == task).nonzero()[:, 0]
        classes = fine[mine].unique()
        if len(classes) != CLASSES_PER_TASK:
            raise damaged_file(path, f"has {len(classes)} classes in task {task}, expected 5")
        target[mine] = torch.searchsorted(classes, fine[mine])
        rows.append(mine)
    sizes = {len(mine) for mine in rows}
    if len(sizes) != 1 or sum(map(len, rows)) != len(fine):
        raise damaged_file(
            path, f"has tasks of {sorted(sizes)} images, expected one number for all 20"
        )
    return target, torch.stack(rows)


def unpickle(path: Path) -> Any:
    """The content of a pickle that holds only arrays and plain values; refuses all others.

    A pickle can name any function and have it called on loading. The names that rebuild a NumPy
    array are allowed, nothing else.

    Args:
        path: The file.

    Returns:
        What the pickle holds; text in it is bytes.

    Raises:
        UsageError: If the file is damaged, or would call something.
    """
    try:
        return _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    except UsageError:  # our own refusal, which already says why
        raise
    except Exception as error:  # Broken pickles raise nearly anything.
        raise damaged_file(path, f"is not a whole CIFAR file ({error})") from error


class _ArraysOnly(pickle.Unpickler):
    # NumPy 2 renamed numpy.core; the files were written long before.
    _ALLOWED = frozenset(
        {
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("_codecs", "encode"),
        }
    )

    # What pickle calls for every name in the file.
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise UsageError(
                f"refused a CIFAR file that calls {module}.{name}: it may run code; "
                "get the original with: lorpman data cifar100"
            )
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)
