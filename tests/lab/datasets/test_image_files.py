from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from lorpman.errors import UsageError
from lorpman.lab.datasets.image_files import decode_images

NEAREST = Image.Resampling.NEAREST


def test_every_image_comes_to_its_place_in_colours_and_size(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 6, 3), dtype=np.uint8)
    paths = [tmp_path / "first.png", tmp_path / "second.png"]
    for path, one in zip(paths, pixels, strict=True):
        Image.fromarray(one).save(path)
    out = torch.zeros(2, 3, 4, 6, dtype=torch.uint8)
    decode_images(paths, out, NEAREST)
    assert torch.equal(out, torch.from_numpy(pixels).permute(0, 3, 1, 2))
    small = torch.zeros(2, 3, 2, 3, dtype=torch.uint8)
    decode_images(paths, small, NEAREST)
    assert torch.equal(small, out[:, :, 1::2, 1::2])


def test_grey_images_become_colours(tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 2), 7, dtype=np.uint8)).save(tmp_path / "grey.png")
    out = torch.zeros(1, 3, 2, 2, dtype=torch.uint8)
    decode_images([tmp_path / "grey.png"], out, NEAREST)
    assert out.unique().tolist() == [7]


def test_all_unreadable_files_are_counted_and_some_named(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.png" for i in range(8)]
    Image.new("RGB", (2, 2)).save(paths[0])
    for path in paths[1:]:
        path.write_bytes(b"no image")
    out = torch.zeros(8, 3, 2, 2, dtype=torch.uint8)
    with pytest.raises(UsageError, match=r"7 of 8 images .*: 1\.png, .*5\.png, \.\.\.;"):
        decode_images(paths, out, NEAREST)
