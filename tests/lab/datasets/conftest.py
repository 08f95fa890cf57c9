"""What tests of datasets share: a cache of their own, and small files of the original layouts."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("LORPMAN_CACHE", str(folder))
    return folder


@pytest.fixture
def real() -> Path:
    """The directory of the real files, for tests that are skipped where there is none."""
    folder = os.environ.get("LORPMAN_DATA")
    if not folder:
        pytest.skip("needs the original files: set LORPMAN_DATA to their directory")
    return Path(folder)


def idx_bytes(array: np.ndarray) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    """A data directory with 30 training and 12 test images, half of the files gzipped."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "mnist"
    folder.mkdir()
    for part, n in (("train", 30), ("t10k", 12)):
        images = idx_bytes(rng.integers(0, 256, (n, 28, 28)))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
        labels = idx_bytes(np.arange(n) % 10)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)
    return tmp_path


@pytest.fixture
def mnist_and_fashion(mnist: Path) -> Path:
    """The same with 25 and 12 garments beside, all of class 7."""
    rng = np.random.default_rng(1)
    folder = mnist / "fashion"
    folder.mkdir()
    for part, n in (("train", 25), ("t10k", 12)):
        images = idx_bytes(rng.integers(0, 256, (n, 28, 28)))
        (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(np.full(n, 7)))
    return mnist
