import gzip
from pathlib import Path

import pytest
import torch

from lorpman.errors import UsageError
from lorpman.lab.datasets import idx_format

CONTENT = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6])


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_come_in_the_shape_that_the_file_states(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("images.gz" if packed else "images")
    path.write_bytes(gzip.compress(CONTENT) if packed else CONTENT)
    assert idx_format.find(tmp_path, "images", "toy") == path
    expected = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.uint8)
    assert torch.equal(idx_format.read(path, 2), expected)


def test_a_plain_file_comes_before_a_packed_one(tmp_path: Path) -> None:
    for name in ("images", "images.gz"):
        (tmp_path / name).write_bytes(CONTENT)
    assert idx_format.find(tmp_path, "images", "toy").name == "images"


def test_a_missing_file_is_named_with_the_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"images\.gz not found; run: lorpman data toy"):
        idx_format.find(tmp_path, "images", "toy")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT[:-1], "truncated or too long: 17 bytes, expected 18"),
        (CONTENT + b"x", "truncated or too long: 19 bytes, expected 18"),
        (b"<html>", "not an idx file of bytes with 2 dimensions"),
        (bytes([0, 0, 8, 3]) + CONTENT[4:], "not an idx file of bytes with 2 dimensions"),
        (CONTENT[:9], "not an idx file"),
    ],
)
def test_other_content_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "images").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        idx_format.read(tmp_path / "images", 2)
