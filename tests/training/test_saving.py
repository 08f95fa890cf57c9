import os
import signal
from types import SimpleNamespace

import pytest
import torch

from lorpman.errors import TrainingInterrupted
from lorpman.training import checkpoint
from lorpman.training.options import Checkpoints
from lorpman.training.saving import Saver
from lorpman.training.stop_signals import Stop
from small_training import (
    LooksAtOtherData,
    exactly,
    fit_small,
    fit_with_all_state,
    same_weights,
)


class State:
    """Training as the saver sees it."""

    def __init__(self, epoch=0, steps=0, first=True):
        self.epoch, self.steps = epoch, steps
        self.fabric = SimpleNamespace(world_size=1, is_global_zero=first)

    def as_checkpoint(self, loader):
        return {"epochs_done": self.epoch, "steps_done": self.steps, "loader": loader}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.safetensors"


def test_every_so_many_steps_are_saved(path):
    saver, saved = Saver(Checkpoints(path, every=3), Stop()), []
    for steps in range(1, 8):
        saver.after_step(State(steps=steps), "data")
        if path.exists():
            saved.append(steps)
            assert checkpoint.load(path) == {
                "epochs_done": 0,
                "steps_done": steps,
                "loader": "data",
            }
            path.unlink()
    assert saved == [3, 6]


def test_only_epochs_are_saved_unless_steps_are_asked_for(path):
    saver = Saver(Checkpoints(str(path)), Stop())
    saver.after_step(State(steps=1), "data")
    assert not path.exists()
    saver.after_epoch(State(epoch=1), "data")
    assert checkpoint.load(path)["epochs_done"] == 1


def test_only_the_first_process_writes(path):
    Saver(Checkpoints(path), Stop()).after_epoch(State(epoch=1, first=False), "data")
    assert not path.exists()


def test_without_a_path_nothing_is_saved_and_no_signal_heard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stop = Stop()
    stop.signal = 15
    saver = Saver(Checkpoints(None, every=1), stop)
    saver.after_step(State(steps=1), "data")
    saver.after_epoch(State(epoch=1), "data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "epoch", "steps", "where"),
    [
        ("after_step", 2, 3, "after epoch 2, step 3"),
        ("after_step", 0, 1, "after epoch 0, step 1"),
        ("after_epoch", 1, 0, "after epoch 1"),
    ],
)
def test_a_signal_stops_after_a_checkpoint(path, how, epoch, steps, where):
    stop = Stop()
    saver = Saver(Checkpoints(path), stop)
    stop.signal = 15
    message = f"stopped by signal 15 {where}; saved in {path}, continue with --resume (resume=True)"
    with pytest.raises(TrainingInterrupted, match=exactly(message)) as stopped:
        getattr(saver, how)(State(epoch, steps), "data")
    assert stopped.value.code == 143
    assert checkpoint.load(path) == {"epochs_done": epoch, "steps_done": steps, "loader": "data"}


def test_a_signal_to_another_process_stops_this_one_too(path):
    state = State(epoch=1)
    state.fabric.world_size, state.fabric.device = 2, "cpu"

    def all_reduce(value, reduce_op):
        assert (int(value), reduce_op) == (0, "max")
        return torch.tensor(2)

    state.fabric.strategy = SimpleNamespace(all_reduce=all_reduce)
    with pytest.raises(TrainingInterrupted, match="stopped by signal 2 after epoch 1"):
        Saver(Checkpoints(path), Stop()).after_epoch(state, "data")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_and_stop_between_two_steps(path, number):
    whole, _ = fit_with_all_state()

    class Kicks(LooksAtOtherData):
        def backward(self, step):
            super().backward(step)
            if self.seen == 9:
                os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(TrainingInterrupted, match="after epoch 1, step 3") as stop:
        fit_with_all_state(path, objective=Kicks())
    assert stop.value.code == 128 + number
    assert signal.getsignal(number) is before
    assert same_weights(whole, fit_with_all_state(path, resume=True)[0])


def test_training_saves_within_epochs_and_after_each(path, monkeypatch):
    """Three steps in an epoch; the third one is saved again when its epoch is over."""
    saved = []
    save = checkpoint.save

    def noting(content, where):
        saved.append((content["epochs_done"], content["steps_done"]))
        save(content, where)

    monkeypatch.setattr(checkpoint, "save", noting)
    fit_small(epochs=2, checkpoint=path, checkpoint_every=2)
    assert saved == [(0, 2), (1, 0), (1, 2), (2, 0)]
