"""CityScapes: the npy layout, the splits, and an augmentation that keeps its targets aligned."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lorpman.errors import UsageError
from lorpman.lab.datasets.cityscapes import load
from lorpman.lab.datasets.splits import Arrays, batches
from lorpman.training.resumable_batches import generators
from small_files import write_cityscapes

H, W = 12, 24


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_cityscapes(tmp_path, 12, 3, H, W)


def arrays(dataset: object) -> Arrays:
    assert isinstance(dataset, Arrays)
    return dataset


def test_shapes_types_and_splits(root: Path) -> None:
    splits = load(root, validation=4)
    assert [len(arrays(s)) for s in (splits.train, splits.validation, splits.test)] == [8, 4, 3]
    x, (label, depth) = next(iter(batches(splits.test, 2)))
    assert isinstance(x, torch.Tensor)
    assert (x.shape, x.dtype) == ((2, 3, H, W), torch.float32)
    assert (label.shape, label.dtype) == ((2, H, W), torch.int64)
    assert (depth.shape, depth.dtype) == ((2, 1, H, W), torch.float32)
    torch.testing.assert_close(x[:, 0], label / 10)
    torch.testing.assert_close(depth[:, 0], (label + 1) / 10)
    both = [arrays(s).rows for s in (splits.train, splits.validation)]
    assert sorted(torch.cat([r for r in both if r is not None]).tolist()) == list(range(12))


def test_validation_on_test_scenes_is_said(root: Path) -> None:
    splits = load(root, validation=None)
    assert len(arrays(splits.train)) == 12
    assert splits.validation is splits.test
    assert "test scenes" in splits.note


def test_augmentation_keeps_label_and_depth_together(root: Path) -> None:
    splits = load(root, validation=4)
    train = arrays(splits.train)
    (generator,) = generators(train)
    state = generator.get_state()
    _, (label, depth) = train.__getitems__(range(8))
    ratio = ((label + 1) / 10 / depth[:, 0]).nan_to_num(posinf=0).flatten(1)
    scales = ratio.max(1).values
    torch.testing.assert_close(ratio, torch.where(ratio > 0, scales[:, None], 0.0))
    assert {round(s, 3) for s in scales.tolist()} <= {1.0, 1.2, 1.5}
    _, (moved, _) = train.__getitems__(range(8))
    assert not torch.equal(moved, label)
    generator.set_state(state)
    _, (again, _) = train.__getitems__(range(8))
    assert torch.equal(again, label)
    assert generators(splits.validation) == []


def test_errors(root: Path) -> None:
    folder = root / "cityscapes" / "val"
    with pytest.raises(UsageError, match="between 1 and 11 scenes, got 475"):
        load(root)
    np.save(folder / "label_7" / "1.npy", np.full((H, W), 19.0))
    with pytest.raises(UsageError, match=r"has classes 19\.\.19, expected -1\.\.6"):
        load(root, validation=4)
    np.save(folder / "label_7" / "1.npy", np.zeros((H, W + 1)))
    with pytest.raises(UsageError, match=r"has shape \(12, 25\), expected \(12, 24\)"):
        load(root, validation=4)
    np.save(folder / "label_7" / "1.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(UsageError, match=r"1\.npy is not a whole npy file"):
        load(root, validation=4)
    (folder / "depth" / "2.npy").write_bytes(b"\x93NUMPY")
    np.save(folder / "label_7" / "1.npy", np.zeros((H, W)))
    with pytest.raises(UsageError, match=r"2\.npy is not a whole npy file"):
        load(root, validation=4)
    (folder / "depth" / "2.npy").unlink()
    with pytest.raises(UsageError, match=r"2\.npy not found; run: lorpman data cityscapes"):
        load(root, validation=4)
    with pytest.raises(UsageError, match=r"0\.npy not found"):
        load(root / "elsewhere")


def test_a_limit_takes_part_of_the_training_scenes_only(tmp_path):
    write_cityscapes(tmp_path, train=12, test=3)
    whole, part = load(tmp_path, 4), load(tmp_path, 4, limit=3)
    assert [len(split) for split in (part.train, part.validation, part.test)] == [3, 4, 3]
    assert set(part.train.rows.tolist()) < set(whole.train.rows.tolist())
    with pytest.raises(UsageError, match="between 1 and 8 scenes, got 9"):
        load(tmp_path, 4, limit=9)
