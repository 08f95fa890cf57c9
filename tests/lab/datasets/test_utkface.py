"""UTKFace: labels from names, odd names, pixels, splits."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lorpman.errors import UsageError
from lorpman.lab.datasets.splits import Arrays, batches
from lorpman.lab.datasets.utkface import load
from small_files import write_utkface

ODD = (
    "39_1_20170116174525125.jpg.chip.jpg",
    "61_1_20170109142408075.jpg.chip.jpg",
    "53__0_20170116184028385.jpg",
)
USABLE = ("44_1_4_20170116235150272.pg.chip.jpg", "24_0_1_20170116220224657 .jpg.chip.jpg")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_utkface(tmp_path, 28, (*ODD, *USABLE))


def arrays(dataset: object) -> Arrays:
    assert isinstance(dataset, Arrays)
    return dataset


def test_labels_and_splits(root: Path) -> None:
    splits = load(root)
    parts = [arrays(s) for s in (splits.train, splits.validation, splits.test)]
    assert [len(p) for p in parts] == [21, 3, 6]
    age, gender, race = parts[0].targets
    ages = [20 + i for i in range(28)] + [44, 24]
    standard = torch.from_numpy((np.array(ages) - np.mean(ages)) / np.std(ages, ddof=1))
    torch.testing.assert_close(age.sort().values, standard.sort().values.float())
    assert gender.unique().tolist() == [0, 1]
    assert race.unique().tolist() == [0, 1, 2, 3, 4]


def test_pixels_are_those_of_pillow(root: Path) -> None:
    x, targets = next(iter(batches(load(root).train, 21)))
    assert isinstance(x, torch.Tensor)
    assert x.shape == (21, 3, 64, 64)
    assert [y.dtype for y in targets] == [torch.float32, torch.int64, torch.int64]
    data = arrays(load(root).train)
    assert data.rows is not None
    path = sorted(p for p in (root / "utkface").rglob("*.jpg") if p.name not in ODD)[data.rows[0]]
    with Image.open(path) as image:
        expected = np.array(image.resize((64, 64), Image.Resampling.BILINEAR))
    np.testing.assert_allclose(x[0].permute(1, 2, 0).numpy() * 255, expected, atol=1e-4)


def test_odd_names_can_be_an_error(root: Path) -> None:
    with pytest.raises(UsageError, match=r"3 files .* 39_1_20170116174525125"):
        load(root, odd_names="error")
    with pytest.raises(UsageError, match="unknown value of odd_names"):
        load(root, odd_names="keep")  # type: ignore[arg-type]


def test_limit(root: Path) -> None:
    splits = load(root, limit=20)
    assert len(arrays(splits.train)) == 14
    assert splits.note == "UTKFace: 20 of 30 images"
    with pytest.raises(UsageError, match="between 1 and 30 images, got 31"):
        load(root, limit=31)


def test_unreadable_images_are_named(root: Path, cache_folder: Path) -> None:
    folder = root / "utkface" / "UTKFace"
    whole = (folder / "20_0_0_20170.jpg.chip.jpg").read_bytes()
    (folder / "20_0_0_20170.jpg.chip.jpg").write_bytes(whole[:200])
    (folder / "21_1_1_20171.jpg.chip.jpg").write_bytes(b"no picture")
    with pytest.raises(UsageError, match=r"2 of 30 images .* 20_0_0_20170.*, 21_1_1_20171"):
        load(root)
    assert list(cache_folder.iterdir()) == []


def test_empty_folder_says_how_to_get_the_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run: lorpman data utkface"):
        load(tmp_path)
