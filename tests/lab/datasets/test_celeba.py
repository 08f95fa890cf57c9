"""CelebA: forty targets, the official partition, two ways with colours."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lorpman.errors import UsageError
from lorpman.lab.datasets.celeba import BGR_MEAN, load
from lorpman.lab.datasets.splits import Arrays, batches
from small_files import celeba_signs, write_celeba


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_celeba(tmp_path, (12, 4, 4))


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
    expected = torch.from_numpy((celeba_signs(20)[16:] + 1) // 2)
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
