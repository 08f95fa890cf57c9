import pytest
import torch
from sklearn.datasets import load_digits
from torch.nn import functional as F

import lorpman as lp
from lorpman.lab.datasets.multidigits import load
from lorpman.lab.datasets.splits import batches
from lorpman.lab.problems.multidigits import network


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


def test_three_digits_and_their_labels():
    split = load(3).validation
    assert split.x.shape[1:] == (1, 16, 16)
    digits = load_digits()
    images, labels = torch.from_numpy(digits.images).float() / 16, torch.from_numpy(digits.target)
    for x, last in zip(split.x[:20, 0], split.targets[2], strict=False):
        # The lowest rows are the last digit's alone.
        assert last in labels[(images[:, 4:] == x[12:, 8:]).all((1, 2))]


def test_fresh_pictures_differ_from_pass_to_pass_and_come_again_from_one_state():
    train = load(fresh_pairs=True).train
    state = train.transform.generator.get_state()
    rows = list(range(100))
    first, second = train.__getitems__(rows), train.__getitems__(rows)
    assert not torch.equal(first[0], second[0])
    train.transform.generator.set_state(state)
    again = train.__getitems__(rows)
    assert torch.equal(first[0], again[0])
    assert all(torch.equal(a, b) for a, b in zip(first[1], again[1], strict=True))


def test_fresh_pictures_are_made_of_training_digits_with_their_labels():
    fixed, fresh = load().train, load(fresh_pairs=True).train
    x, (left, _) = fresh.__getitems__(list(range(500)))
    known = fixed.x[:, 0, :4, :8].flatten(1)
    matches = torch.cdist(x[:, 0, :4, :8].flatten(1), known) == 0
    seen = matches.any(1)
    assert seen.float().mean() > 0.95  # of 1,078 digits, 6,000 fixed pairs miss four or so
    places = matches.int().argmax(1)
    assert (fixed.targets[0][places] == left)[seen].float().mean() > 0.98  # a few look the same


class Stop(Exception):
    pass


def test_training_on_fresh_pictures_goes_on_after_a_stop_within_an_epoch_bit_by_bit(tmp_path):
    def train(stop_after=None, resume=False):
        torch.manual_seed(0)
        model = lp.LowRank(network(), 2, rank=2)
        calls = iter(range(10**6))

        def loss(output, target):
            if next(calls) == stop_after:
                raise Stop
            return F.cross_entropy(output, target)

        tasks = [lp.Task("left", loss, lp.accuracy), lp.Task("right", loss, lp.accuracy)]
        order = torch.Generator().manual_seed(1)
        loader = batches(load(fresh_pairs=True).train, 1000, shuffle=True, generator=order)
        path = None if stop_after is None and not resume else tmp_path / "kept.safetensors"
        options = {"checkpoint": path, "checkpoint_every": 2 if path else None, "resume": resume}
        lp.fit(model, tasks, loader, epochs=2, window=2, seed=0, progress=False, **options)
        return model.state_dict()

    whole = train()
    with pytest.raises(Stop):
        train(stop_after=4 * 9)  # two preferences, two tasks: in the fourth step of epoch two
    resumed = train(resume=True)
    assert all(torch.equal(resumed[name], value) for name, value in whole.items())
