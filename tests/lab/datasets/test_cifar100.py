"""CIFAR-100: twenty tasks with images of their own, safe reading, repeatable augmentation."""

import os
import pickle
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lorpman.errors import UsageError
from lorpman.lab.datasets import cifar100
from lorpman.lab.datasets.cifar100 import DEVIATION, MEAN, TASKS, load
from lorpman.lab.datasets.splits import TaskArrays, batches
from lorpman.training.resumable_batches import generators
from small_files import write_cifar100, write_cifar_part


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_cifar100(tmp_path, 4, 2)
    return tmp_path / "cifar100" / "cifar-100-python"


def tasks(dataset: object) -> TaskArrays:
    assert isinstance(dataset, TaskArrays)
    return dataset


def raw(x: Tensor) -> Tensor:
    scale = torch.tensor(DEVIATION).view(3, 1, 1)
    return ((x * scale + torch.tensor(MEAN).view(3, 1, 1)) * 255).round().long()


def test_each_task_has_its_own_images_and_labels(folder: Path, tmp_path: Path) -> None:
    splits = load(tmp_path, validation=5, augment=False)
    sizes = [len(tasks(s)) for s in (splits.train, splits.validation, splits.test)]
    assert sizes == [15, 5, 10]
    x, targets = tasks(splits.test).__getitems__(range(10))
    assert len(x) == len(targets) == len(TASKS) == 20
    for i in range(20):
        fine = raw(x[i])[:, 0, 0, 0]
        assert (fine % 20 == i).all()
        assert torch.equal(targets[i], fine // 20)


def test_training_and_validation_images_do_not_meet(folder: Path, tmp_path: Path) -> None:
    splits = load(tmp_path, validation=5)
    a, b = tasks(splits.train).rows.flatten(), tasks(splits.validation).rows.flatten()
    assert torch.cat([a, b]).sort().values.tolist() == list(range(400))
    again = load(tmp_path, validation=5)
    assert torch.equal(tasks(again.train).rows, tasks(splits.train).rows)


def test_loader_yields_one_batch_per_task(folder: Path, tmp_path: Path) -> None:
    x, targets = next(iter(batches(load(tmp_path, validation=5).train, 4, shuffle=True)))
    assert [tuple(part.shape) for part in x] == [(4, 3, 32, 32)] * 20
    assert [tuple(y.shape) for y in targets] == [(4,)] * 20
    single, _ = tasks(load(tmp_path, validation=5).train)[0]
    assert [tuple(part.shape) for part in single] == [(3, 32, 32)] * 20


def test_augmentation_repeats_from_a_saved_state(folder: Path, tmp_path: Path) -> None:
    splits = load(tmp_path, validation=5)
    train = tasks(splits.train)
    (generator,) = generators(train)
    state = generator.get_state()
    first, again = (torch.stack(list(train.__getitems__([0, 1])[0])) for _ in range(2))
    generator.set_state(state)
    repeated = torch.stack(list(train.__getitems__([0, 1])[0]))
    assert torch.equal(first, repeated)
    assert not torch.equal(first, again)
    assert generators(splits.test) == []


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch never-run",)


def test_a_pickle_that_calls_anything_is_refused(folder: Path, tmp_path: Path) -> None:
    write_cifar_part(folder / "train", 4, filenames=Evil())
    with pytest.raises(UsageError, match=r"refused a CIFAR file that calls posix\.system"):
        load(tmp_path)
    assert not Path("never-run").exists()


def test_errors(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="between 1 and 19 images per task, got 20"):
        load(tmp_path, validation=20)
    whole = (folder / "test").read_bytes()
    (folder / "test").write_bytes(whole[:1000])
    with pytest.raises(UsageError, match="test is not a whole CIFAR file"):
        load(tmp_path, validation=5)
    write_cifar_part(folder / "test", 2, fine_labels=[0] * 200)
    with pytest.raises(UsageError, match="has 1 classes in task 0, expected 5"):
        load(tmp_path, validation=5)
    write_cifar_part(folder / "test", 2, fine_labels=[0] * 3)
    with pytest.raises(UsageError, match="200 images, 3 and 200 labels"):
        load(tmp_path, validation=5)
    (folder / "test").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(UsageError, match="does not hold images"):
        load(tmp_path, validation=5)
    (folder / "test").unlink()
    with pytest.raises(UsageError, match="test not found; run: lorpman data cifar100"):
        load(tmp_path, validation=5)


def test_real_files(real: Path) -> None:
    start = time.perf_counter()
    splits = load(real)
    assert time.perf_counter() - start < 20
    sizes = [len(tasks(s)) for s in (splits.train, splits.validation, splits.test)]
    assert sizes == [2250, 250, 500]
    for split in (splits.train, splits.test):
        _, targets = tasks(split).__getitems__(range(100))
        assert all(y.unique().tolist() == [0, 1, 2, 3, 4] for y in targets)


def test_the_names_of_classes_stand_in_the_order_of_their_numbers():
    """Labels within a task keep the order of the dataset's own, which is that of the alphabet."""
    assert len(cifar100.TASKS) == cifar100.NUM_TASKS
    for classes in cifar100.CLASSES.values():
        assert len(classes) == cifar100.CLASSES_PER_TASK
        assert list(classes) == sorted(classes)
    assert len({name for classes in cifar100.CLASSES.values() for name in classes}) == 100
