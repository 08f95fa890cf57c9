"""CelebA: forty targets, the official partition, two ways with colours."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lorpman.data.base import Arrays, batches
from lorpman.data.celeba import BGR_MEAN, load
from lorpman.errors import UsageError

PART = [0] * 12 + [1] * 4 + [2] * 4


def signs() -> np.ndarray:
    return np.random.default_rng(1).choice([-1, 1], (20, 40))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    images = tmp_path / "celeba" / "img_align_celeba"
    images.mkdir(parents=True)
    names = [f"{i:06d}.jpg" for i in range(1, 21)]
    rng = np.random.default_rng(0)
    for name in names:
        pixels = rng.integers(0, 256, (109, 89, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(images / name)
    head = ["20", " ".join(f"Attribute_{i}" for i in range(40))]
    rows = [f"{n} " + " ".join(f"{s:2d}" for s in r) for n, r in zip(names, signs(), strict=True)]
    folder = tmp_path / "celeba"
    (folder / "list_attr_celeba.txt").write_text("\n".join(head + rows) + "\n")
    parts = [f"{n} {p}" for n, p in zip(names, PART, strict=True)]
    (folder / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")
    return tmp_path


def arrays(dataset: object) -> Arrays:
    assert isinstance(dataset, Arrays)
    return dataset


def test_official_partition_and_forty_targets(root: Path) -> None:
    splits = load(root)
    assert [len(arrays(s)) for s in (splits.train, splits.validation, splits.test)] == [12, 4, 4]
    x, targets = next(iter(batches(splits.test, 4)))
    assert isinstance(x, torch.Tensor)
    assert x.shape == (4, 3, 64, 64)
    assert 0 <= x.min() <= x.max() <= 1
    assert len(targets) == 40
    expected = torch.from_numpy((signs()[16:] + 1) // 2)
    assert torch.equal(torch.stack(targets, dim=1), expected)


@pytest.mark.parametrize("colours", ["rgb", "bgr"])
def test_colours(root: Path, colours: str) -> None:
    x, _ = arrays(load(root, colours=colours).train)[0]  # type: ignore[arg-type]
    assert isinstance(x, torch.Tensor)
    way = Image.Resampling.BILINEAR if colours == "rgb" else Image.Resampling.NEAREST
    with Image.open(root / "celeba" / "img_align_celeba" / "000001.jpg") as image:
        pixels = np.array(image.resize((64, 64), way), np.float32)
    if colours == "bgr":
        pixels = pixels[:, :, ::-1] - np.array(BGR_MEAN, np.float32)
    np.testing.assert_allclose(x.permute(1, 2, 0).numpy(), pixels / 255, atol=1e-6)


def test_limit_reads_only_what_it_needs(root: Path) -> None:
    splits = load(root, limit=10)
    assert [len(arrays(s)) for s in (splits.train, splits.validation, splits.test)] == [6, 2, 2]
    assert len(arrays(splits.train).x) == 10
    assert splits.note == "CelebA: 10 of 20 images"
    with pytest.raises(UsageError, match="between 1 and 20 images"):
        load(root, limit=0)


def test_errors(root: Path) -> None:
    folder = root / "celeba"
    attributes, partition = folder / "list_attr_celeba.txt", folder / "list_eval_partition.txt"
    with pytest.raises(UsageError, match="unknown colours 'gbr'"):
        load(root, colours="gbr")  # type: ignore[arg-type]
    whole = partition.read_text()
    partition.write_text(whole.replace("000003.jpg 0", "000003.jpg 7"))
    with pytest.raises(UsageError, match="parts other than 0, 1 and 2"):
        load(root)
    partition.write_text(whole.replace("000003.jpg 0\n", ""))
    with pytest.raises(UsageError, match="does not name the 20 images"):
        load(root)
    partition.write_text(whole)
    text = attributes.read_text()
    attributes.write_text(text[:-10])
    with pytest.raises(UsageError, match="a name and 40 numbers in line 22"):
        load(root)
    attributes.write_text(
        text.replace("000002.jpg -1", "000002.jpg 5").replace("000002.jpg  1", "000002.jpg 5")
    )
    with pytest.raises(UsageError, match="other than -1 and 1"):
        load(root)
    attributes.write_text(text)
    (folder / "img_align_celeba" / "000005.jpg").unlink()
    with pytest.raises(UsageError, match=r"000005\.jpg not found; run: lorpman data celeba"):
        load(root)
    attributes.unlink()
    with pytest.raises(UsageError, match=r"list_attr_celeba\.txt not found"):
        load(root)
