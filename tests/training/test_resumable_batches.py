import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lorpman import UsageError
from lorpman.training.resumable_batches import ResumableBatches, capture, generators, restore
from small_training import Noisy, exactly, make_random_loader


def _batches(loader=None):
    return ResumableBatches(loader or make_random_loader(), lambda batch: batch)


def _inputs(pairs):
    return [x for x, _ in pairs]


def _equal(left, right):
    return len(left) == len(right) and all(map(torch.equal, left, right))


def test_one_pass_is_the_loader_moved_to_the_device():
    batches = ResumableBatches([1, 2, 3], lambda batch: batch * 10)
    assert list(batches) == [10, 20, 30]
    assert list(batches) == []  # the epoch is over


def test_a_second_loop_goes_on_where_the_first_one_left():
    batches = _batches([1, 2, 3])
    assert next(iter(batches)) == 1
    assert list(batches) == [2, 3]


def test_further_batches_come_from_a_pass_of_their_own():
    batches = ResumableBatches([1, 2], lambda batch: batch * 10)
    steps = iter(batches)
    assert next(steps) == 10
    assert [batches.another() for _ in range(3)] == [10, 20, 10]
    assert next(steps) == 20
    assert batches.another() == 20


def test_the_state_counts_what_every_step_asked_for():
    batches = _batches([1, 2, 3])
    assert batches.state()["asked"].tolist() == []
    for asked, _ in zip((2, 0, 1), batches, strict=True):
        for _ in range(asked):
            batches.another()
    asked = batches.state()["asked"]
    assert asked.tolist() == [2, 0, 1]
    assert asked.dtype == torch.int64


@pytest.mark.parametrize("own_generator", [True, False])
@pytest.mark.parametrize("done", [0, 1, 3, 6])
def test_a_replayed_pass_goes_on_with_the_same_batches(done, own_generator):
    """In the order of the first pass, with its noise, whatever was drawn before and since."""
    batches = _batches(make_random_loader(own_generator))
    steps = iter(batches)
    for step in range(done):
        next(steps)
        for _ in range(step % 3):
            batches.another()
    state, now = batches.state(), capture(batches._loader)
    rest = _inputs(steps)

    torch.manual_seed(99)
    again = _batches(make_random_loader(own_generator))
    torch.rand(5)
    again.replay(state)
    restore(now, again._loader)
    assert again.state()["asked"].tolist() == state["asked"].tolist()
    assert _equal(_inputs(again), rest)
    assert len(rest) == 6 - done


def test_a_replayed_pass_can_be_saved_and_replayed_again():
    batches = _batches()
    next(iter(batches))
    first = _batches()
    first.replay(batches.state())
    second = _batches()
    torch.rand(3)
    second.replay(first.state())
    assert torch.equal(second.state()["start"]["torch"], batches.state()["start"]["torch"])
    assert _equal(_inputs(first), _inputs(second))


def _draw(loader):
    return [
        torch.rand(3).tolist(),
        random.random(),
        np.random.rand(3).tolist(),  # noqa: NPY002
        torch.rand(3, generator=loader.generator).tolist(),
        torch.rand(3, generator=loader.dataset.transform.generator).tolist(),
    ]


def test_restoring_undoes_every_draw_since():
    loader = make_random_loader()
    np.random.randn()  # noqa: NPY002  # leaves a second normal number, which is state too
    state = capture(loader)
    first = _draw(loader)
    normal = np.random.randn()  # noqa: NPY002
    second = _draw(loader)
    assert all(a != b for a, b in zip(first, second, strict=True))
    restore(state, loader)
    assert _draw(loader) == first
    assert np.random.randn() == normal  # noqa: NPY002


def test_a_loader_of_another_kind_cannot_take_the_state():
    state = capture(make_random_loader(own_generator=True))
    assert len(state["loader"]) == 2
    message = (
        "the loader has 1 random generators, that of the checkpoint had 2; resume with a loader "
        "like the one it was begun with"
    )
    with pytest.raises(UsageError, match=exactly(message)):
        restore(state, make_random_loader(own_generator=False))


@pytest.mark.parametrize(
    "change",
    [
        {"torch": torch.zeros(5, dtype=torch.uint8)},
        {"torch": torch.zeros(5056, dtype=torch.uint8)},
        {"python": (3, (1, 2), None)},
        {"python": (3, (2**40,) * 625, None)},
        {"python": (9, (), None)},
        {"numpy": ("MT19937", [1, 2], 0, 0, 0.0)},
        {"numpy": ("PCG64", [1] * 624, 0, 0, 0.0)},
        {"loader": [torch.zeros(5, dtype=torch.uint8)] * 2},
    ],
)
def test_states_that_no_generator_takes_are_one_line(change):
    loader = make_random_loader()
    state = capture(loader)
    try:
        with pytest.raises(UsageError, match=r"^the random states of the checkpoint are damaged: "):
            restore({**state, **change}, loader)
    finally:
        restore(state, loader)


def test_a_pass_cannot_be_replayed_on_less_data():
    loader = make_random_loader()
    state = {"start": capture(loader), "asked": torch.zeros(7, dtype=torch.int64)}
    message = (
        "the checkpoint was made after 7 steps of an epoch, but the loader has fewer batches; "
        "resume with the data it was begun with"
    )
    with pytest.raises(UsageError, match=exactly(message)):
        ResumableBatches(loader, lambda batch: batch).replay(state)


def test_generators_of_a_dataset_are_those_of_its_transform():
    noisy = Noisy(0)
    assert generators(SimpleNamespace(transform=noisy)) == [noisy.generator]
    assert generators(SimpleNamespace(transform=None)) == []
    assert generators(SimpleNamespace(transform=SimpleNamespace(generator=3))) == []
    assert generators([]) == []
    assert capture([1, 2])["loader"] == []


def test_states_of_devices_are_kept_where_there_are_any(monkeypatch):
    """A CPU cannot have them: functions of torch stand for it."""
    states, given = [torch.ones(2)], []
    assert capture([])["devices"] == []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: states)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", given.append)
    state = capture([])
    restore(state, [])
    assert state["devices"] is states
    assert given == [states]
    # A checkpoint from the CPU goes on here, and one from here on the CPU.
    restore({**state, "devices": []}, [])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    restore(state, [])
    assert len(given) == 1
