"""MultiMNIST: the picture that Pillow would make, the pairs, and the errors."""

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lorpman.errors import UsageError
from lorpman.lab.datasets.overlaid_pairs import load, overlay, pairs
from lorpman.lab.datasets.splits import Arrays, batches

SIZES = (20, 8, 9)


def arrays(dataset: object) -> Arrays:
    assert isinstance(dataset, Arrays)
    return dataset


def test_overlay_is_what_pillow_makes() -> None:
    images = torch.randint(0, 256, (6, 28, 28), dtype=torch.uint8)
    left, right = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5])
    made = overlay(images, left, right)
    for i in range(3):
        canvas = np.zeros((36, 36), np.float32)
        canvas[:28, :28] = images[i].numpy() / 255
        canvas[6:34, 6:34] = np.maximum(canvas[6:34, 6:34], images[i + 3].numpy() / 255)
        expected = Image.fromarray(canvas).resize((28, 28), Image.Resampling.BICUBIC)
        np.testing.assert_allclose(made[i, 0].numpy(), np.array(expected), atol=2e-6)


def test_pairs_are_different_and_cover_everything() -> None:
    left, right = pairs(5, 2000, np.random.default_rng(0))
    assert not (left == right).any()
    seen = {(int(a), int(b)) for a, b in zip(left, right, strict=True)}
    assert len(seen) == 20


def test_load_gives_batches_of_the_stated_shape(mnist: Path) -> None:
    splits = load(mnist, sizes=SIZES)
    parts = [arrays(s) for s in (splits.train, splits.validation, splits.test)]
    assert tuple(len(p) for p in parts) == SIZES
    x, targets = next(iter(batches(splits.train, 16)))
    assert isinstance(x, torch.Tensor)
    assert x.shape == (16, 1, 28, 28)
    assert x.dtype == torch.float32
    assert [(y.dtype, tuple(y.shape)) for y in targets] == [(torch.int64, (16,))] * 2


def test_same_seed_same_data_and_the_cache_changes_nothing(mnist: Path) -> None:
    first, again = arrays(load(mnist, sizes=SIZES).train), arrays(load(mnist, sizes=SIZES).train)
    other = arrays(load(mnist, sizes=SIZES, seed=1).train)
    assert torch.equal(first.x, again.x)
    assert torch.equal(first.targets[0], again.targets[0])
    assert not torch.equal(first.x, other.x)


def test_changed_source_is_prepared_anew(mnist: Path) -> None:
    before = arrays(load(mnist, sizes=SIZES).train).x.clone()
    path = mnist / "mnist" / "train-images-idx3-ubyte.gz"
    raw = bytearray(gzip.decompress(path.read_bytes()))
    raw[16:] = bytes(len(raw) - 16)
    path.write_bytes(gzip.compress(bytes(raw)))
    after = arrays(load(mnist, sizes=SIZES).train).x
    assert before.abs().max() > 0
    assert after.abs().max() == 0


def test_missing_file_is_named_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"train-images-idx3-ubyte\.gz not found; run: lorpman"):
        load(tmp_path)
    with pytest.raises(UsageError, match="lorpman data multifashion"):
        load(tmp_path, source="fashion")


def test_truncated_gzip_and_truncated_idx(mnist: Path) -> None:
    path = mnist / "mnist" / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:500])
    with pytest.raises(UsageError, match=r"train-images.*not a whole gzip file"):
        load(mnist, sizes=SIZES)
    path.write_bytes(gzip.compress(gzip.decompress(whole)[:-7]))
    with pytest.raises(UsageError, match="truncated or too long"):
        load(mnist, sizes=SIZES)
    path.write_bytes(gzip.compress(b"<html>not found</html>"))
    with pytest.raises(UsageError, match="not an idx file"):
        load(mnist, sizes=SIZES)


def test_labels_out_of_range_and_too_few(mnist: Path) -> None:
    path = mnist / "mnist" / "t10k-labels-idx1-ubyte"
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([77]))
    with pytest.raises(UsageError, match=r"holds the label 77, expected 0\.\.9"):
        load(mnist, sizes=SIZES)
    path.write_bytes(raw[:4] + (11).to_bytes(4, "big") + raw[9:])
    with pytest.raises(UsageError, match="11 labels for 12 images"):
        load(mnist, sizes=SIZES)


def test_empty_split_and_unknown_source(mnist: Path) -> None:
    with pytest.raises(UsageError, match="three positive numbers"):
        load(mnist, sizes=(5, 0, 5))
    with pytest.raises(UsageError, match="unknown source 'mnst'; did you mean 'mnist'"):
        load(mnist, source="mnst")  # type: ignore[arg-type]


def test_real_files_in_less_than_20_seconds(real: Path) -> None:
    start = time.perf_counter()
    splits = load(real)
    assert time.perf_counter() - start < 20
    assert [len(arrays(s)) for s in (splits.train, splits.validation, splits.test)] == [
        50_000,
        10_000,
        10_000,
    ]
    x = arrays(splits.train).x
    assert -0.2 < x.min() < 0
    assert 1 < x.max() < 1.2
