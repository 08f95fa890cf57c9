"""MultiMNIST: the picture that Pillow would make, the pairs, and the errors."""

import gzip
import time
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from PIL import Image

from lorpman.errors import UsageError
from lorpman.lab.datasets.overlaid_pairs import FreshPairs, load, overlay, pairs
from lorpman.lab.datasets.splits import Arrays, batches
from lorpman.training.resumable_batches import capture, restore

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


def fresh(root: Path, source: Literal["mnist", "mnist+fashion"] = "mnist") -> Arrays:
    return arrays(load(root, source, sizes=SIZES, fresh_pairs=True).train)


def test_fresh_pairs_are_others_in_every_pass(mnist: Path) -> None:
    train = fresh(mnist)
    assert len(train) == SIZES[0]
    first, second = ([x for x, _ in batches(train, 8)] for _ in range(2))
    assert not any(torch.equal(a, b) for a, b in zip(first, second, strict=True))  # type: ignore[arg-type]


def test_fresh_pairs_are_pairs_of_different_images_with_their_labels(mnist: Path) -> None:
    train = fresh(mnist)
    assert isinstance(train.transform, FreshPairs)
    originals = train.transform.originals
    seen = set()
    for _ in range(200):
        x, (left, right) = train.__getitems__(range(SIZES[0]))
        assert isinstance(x, torch.Tensor)
        # Rows 0..4 show the left image alone; its ten labels repeat, so look for the image.
        pictures = overlay(originals.left, torch.arange(30), torch.arange(30))
        places = torch.cdist(x[:, 0, :3, :20].flatten(1), pictures[:, 0, :3, :20].flatten(1))
        found = places.argmin(1)
        assert torch.equal(originals.left_labels[found], left)
        seen |= {(int(a), int(b)) for a, b in zip(found, right, strict=True)}
    assert len(seen) > 250  # of 30 images times 10 labels


def test_fresh_pairs_of_processes_that_share_a_batch_differ(mnist: Path) -> None:
    one, other = fresh(mnist), fresh(mnist)
    (x, _), (z, _) = one.__getitems__([0, 2, 4]), other.__getitems__([1, 3, 5])
    assert not torch.equal(x, z)  # type: ignore[arg-type]


def test_fresh_pairs_come_again_from_the_state_that_checkpoints_keep(mnist: Path) -> None:
    loader = batches(fresh(mnist), 8)
    before = capture(loader)
    first = [x for x, _ in loader]
    restore(before, loader)
    assert all(torch.equal(a, b) for a, b in zip(first, (x for x, _ in loader), strict=True))  # type: ignore[arg-type]


def test_a_digit_left_and_a_garment_right(mnist_and_fashion: Path) -> None:
    splits = load(mnist_and_fashion, "mnist+fashion", sizes=SIZES)
    for split in (splits.train, splits.test):
        left, right = arrays(split).targets
        assert set(right.tolist()) == {7}
        assert len(set(left.tolist())) > 3
    train = fresh(mnist_and_fashion, "mnist+fashion")
    x, (left, right) = train.__getitems__(range(SIZES[0]))
    assert isinstance(x, torch.Tensor)
    assert x.shape == (SIZES[0], 1, 28, 28)
    assert set(right.tolist()) == {7}
    # What is laid over what: the upper rows are the digit's alone, the lower ones the garment's.
    black = torch.zeros(1, 28, 28, dtype=torch.uint8)
    grey = torch.full((1, 28, 28), 255, dtype=torch.uint8)
    none = torch.tensor([0])
    picture = overlay(black, none, none, grey)[0, 0]
    assert picture[:3].abs().max() < 0.01
    assert picture[10:24, 10:24].min() > 0.99


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
