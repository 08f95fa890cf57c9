"""Small generated files in the original layouts of the datasets that cannot be shipped."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image


def write_picture(path: Path, seed: int, height: int = 80, width: int = 80) -> None:
    """A picture of noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, format="JPEG")


def write_utkface(root: Path, count: int = 28, more: Sequence[str] = ()) -> Path:
    """``count`` faces, and further ones with the names ``more``."""
    names = [f"{20 + i % 60}_{i % 2}_{i % 5}_2017{i}.jpg.chip.jpg" for i in range(count)]
    for i, name in enumerate((*names, *more)):
        write_picture(root / "utkface" / "UTKFace" / name, i)
    return root


def celeba_signs(count: int) -> np.ndarray:
    """The attributes -1 and 1 that :func:`write_celeba` writes, ``[count, 40]``."""
    return np.random.default_rng(1).choice([-1, 1], (count, 40))


def write_celeba(root: Path, sizes: tuple[int, int, int] = (12, 4, 4)) -> Path:
    """Faces with 40 attributes, in three parts of the given sizes."""
    folder, count = root / "celeba", sum(sizes)
    names = [f"{i:06d}.jpg" for i in range(1, count + 1)]
    for i, name in enumerate(names):
        write_picture(folder / "img_align_celeba" / name, i, 109, 89)
    head = [str(count), " ".join(f"Attribute_{i}" for i in range(40))]
    rows = zip(names, celeba_signs(count), strict=True)
    lines = head + [f"{name} " + " ".join(f"{sign:2d}" for sign in row) for name, row in rows]
    (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    parts = np.repeat([0, 1, 2], sizes)
    lines = [f"{name} {part}" for name, part in zip(names, parts, strict=True)]
    (folder / "list_eval_partition.txt").write_text("\n".join(lines) + "\n")
    return root


def write_scene(folder: Path, i: int, height: int, width: int) -> None:
    """One scene, whose picture and depth follow from its classes."""
    label = np.random.default_rng(i).integers(-1, 7, (height, width)).astype(float)
    arrays = {
        "image": np.stack([label / 10] * 3, axis=-1),
        "label_7": label,
        "depth": (label[..., None] + 1) / 10,
    }
    for kind, array in arrays.items():
        (folder / kind).mkdir(parents=True, exist_ok=True)
        np.save(folder / kind / f"{i}.npy", array)


def write_cityscapes(
    root: Path, train: int = 12, test: int = 3, height: int = 12, width: int = 24
) -> Path:
    """Street scenes of noise."""
    for part, count in (("train", train), ("val", test)):
        for i in range(count):
            write_scene(root / "cityscapes" / part, i, height, width)
    return root


def write_cifar_part(path: Path, per_class: int, **changes: object) -> None:
    """A file of CIFAR-100; an image's first pixel is its fine label."""
    rng = np.random.default_rng(0)
    fine = rng.permutation(np.repeat(np.arange(100), per_class))
    images = rng.integers(0, 256, (len(fine), 3072), dtype=np.uint8)
    images[:, 0] = fine
    content = {
        b"data": images,
        b"fine_labels": fine.tolist(),
        b"coarse_labels": (fine % 20).tolist(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    content.update({k.encode(): v for k, v in changes.items()})
    path.write_bytes(pickle.dumps(content, protocol=2))


def write_cifar100(root: Path, train: int = 4, test: int = 2) -> Path:
    """So many images of each of the 100 classes."""
    folder = root / "cifar100" / "cifar-100-python"
    write_cifar_part(folder / "train", train)
    write_cifar_part(folder / "test", test)
    return root
