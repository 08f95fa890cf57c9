"""Random changes of images that keep what belongs together together."""

import torch

from lorpman.lab.datasets.augmentation import random_crop, random_flip, random_zoom


def test_random_crop_moves_and_fills_with_black() -> None:
    generator = torch.Generator().manual_seed(0)
    images = torch.arange(1, 26).reshape(1, 1, 5, 5).expand(200, 1, 5, 5).contiguous()
    moved = random_crop(images, 1, generator)
    padded = torch.nn.functional.pad(images[0, 0], [1] * 4)
    windows = [padded[i : i + 5, j : j + 5] for i in range(3) for j in range(3)]
    seen = [next(k for k, w in enumerate(windows) if torch.equal(w, m[0])) for m in moved]
    assert set(seen) == set(range(9))


def test_random_flip_mirrors_the_same_samples_everywhere() -> None:
    x = torch.arange(12.0).reshape(4, 1, 1, 3).repeat(8, 1, 1, 1)
    a, b = random_flip([x, x[:, 0, 0]], torch.Generator().manual_seed(0))
    assert torch.equal(a[:, 0, 0], b)
    mirrored = (a == x.flip(-1)).flatten(1).all(1)
    assert (mirrored | (a == x).flatten(1).all(1)).all()
    assert 0 < mirrored.sum() < 32


def test_zoom_by_one_changes_nothing() -> None:
    image, label, depth = torch.rand(3, 8, 16), torch.randint(0, 7, (8, 16)), torch.rand(1, 8, 16)
    out = random_zoom(image, label, depth, (1.0,), torch.Generator())
    torch.testing.assert_close(out[0], image)
    assert torch.equal(out[1], label)
    assert torch.equal(out[2], depth)


def test_zoom_brings_things_nearer_and_invents_no_class() -> None:
    image, depth = torch.rand(3, 8, 16), torch.full((1, 8, 16), 3.0)
    label = torch.zeros(8, 16, dtype=torch.long)
    label[:, 8:] = 5
    generator = torch.Generator().manual_seed(0)
    zoomed = random_zoom(image, label, depth, (1.5,), generator)
    assert [part.shape for part in zoomed] == [image.shape, label.shape, depth.shape]
    assert set(zoomed[1].unique().tolist()) <= {0, 5}
    assert torch.equal(zoomed[2], depth / 1.5)
