import torch
from sklearn.datasets import load_digits

from lorpman.lab.datasets.multidigits import load


def test_no_digit_image_is_in_two_splits():
    splits = load()
    digits = torch.from_numpy(load_digits().images).float().flatten(1) / 16
    used = []
    for split in (splits.train, splits.validation, splits.test):
        # The upper left corner is covered by the left digit alone.
        corner = split.x[:, 0, :4, :8].flatten(1)
        known = digits[:, :32]
        matches = (torch.cdist(corner, known) == 0).nonzero()[:, 1]
        unique = (torch.cdist(known, known) == 0).sum(1) == 1
        used.append({int(i) for i in matches.unique() if unique[i]})
    assert all(used)
    assert not used[0] & used[1]
    assert not used[0] & used[2]
    assert not used[1] & used[2]


def test_both_targets_are_right():
    split = load().validation
    digits = load_digits()
    images = torch.from_numpy(digits.images).float() / 16
    for x, left, right in zip(split.x[:50, 0], split.targets[0], split.targets[1], strict=False):
        first = images[(images[:, :4] == x[:4, :8]).all((1, 2))]
        second = images[(images[:, 4:] == x[8:, 4:]).all((1, 2))]
        assert len(first) > 0
        assert len(second) > 0
        labels = torch.from_numpy(digits.target)
        assert left in labels[(images[:, :4] == x[:4, :8]).all((1, 2))]
        assert right in labels[(images[:, 4:] == x[8:, 4:]).all((1, 2))]


def test_data_is_the_same_every_time():
    first, second = load(), load()
    assert torch.equal(first.test.x, second.test.x)
    assert (len(first.train), len(first.validation), len(first.test)) == (6000, 1500, 2000)
