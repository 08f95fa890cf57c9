"""Interrupted at any step, by anything, and resumed: the same bits as without interruption."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import lorpman as lp
from command_line import command, notes, settings
from lorpman.errors import TrainingInterrupted
from lorpman.lab.datasets.splits import Arrays, batches
from lorpman.training import checkpoint
from lorpman.training.checkpoint import CheckpointWarning, previous

SETTINGS = ("watch_samples=50", "freeze_epoch=1", "batch_size=512")
OPTIONS = ["--epochs", "3", *settings(*SETTINGS)]


class Noisy:
    """A transform with a generator of its own, as augmentation has."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, x, targets):
        return x + 0.1 * torch.randn(x.shape, generator=self.generator), targets


class Looks(lp.Rule):
    """A rule that measures on other data, and has state and a parameter of its own."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("seen", torch.zeros(()))

    def backward(self, step):
        for _ in range(int(self.seen) % 3):
            self.seen += step.losses_at(step.alphas, step.another_batch()).detach().sum() * 0
        self.seen += 1
        step.backward((step.alphas * step.losses * self.weight).sum())


def _loader(own_generator=True):
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(2))
    data = Arrays(x, [x[:, :1].clone(), -x[:, :1].clone()], transform=Noisy(7))
    order = torch.Generator().manual_seed(3) if own_generator else None
    return batches(data, 10, shuffle=True, generator=order)


def _fit(path=None, loader=None, **options):
    torch.manual_seed(1)
    bottom = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.1))
    model = lp.LowRank(lp.SharedBottom(bottom, [nn.Linear(8, 1), nn.Linear(8, 1)]), 2)
    tasks = [lp.Task(n, F.mse_loss, F.mse_loss, False, 10.0) for n in ("left", "right")]
    defaults = {"epochs": 3, "progress": False, "seed": 5, "freeze_epoch": 2, "objective": Looks()}
    defaults["scheduler"] = lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 3)
    history = lp.fit(model, tasks, loader or _loader(), checkpoint=path, **{**defaults, **options})
    return model.state_dict(), history


def _same(left, right):
    return all(torch.equal(a, b) for a, b in zip(left.values(), right.values(), strict=True))


class Stopped(Exception):
    pass


def _stopping(loader, after):
    """The loader, broken after so many batches of training in all."""

    class Broken:
        generator, dataset, left = loader.generator, loader.dataset, after

        def __len__(self):
            return len(loader)

        def __iter__(self):
            for batch in loader:
                if Broken.left == 0:
                    raise Stopped
                Broken.left -= 1
                yield batch

    return Broken()


def test_a_schedule_of_steps_goes_on_where_it_was(tmp_path):
    path = tmp_path / "c.safetensors"

    def fit(*args, **options):
        scheduler = torch.optim.lr_scheduler.OneCycleLR
        make = {"scheduler": lambda o: scheduler(o, 0.01, total_steps=16)}
        return _fit(*args, scheduler_interval="step", **make, **options)[0]

    with pytest.raises(Stopped):
        fit(path, _stopping(_loader(), 7), checkpoint_every=1)
    with pytest.raises(lp.UsageError, match="moves with every step, and this one with every epoch"):
        _fit(path, resume=True)
    assert _same(fit(path, resume=True), fit())


@pytest.mark.parametrize("own_generator", [True, False])
@pytest.mark.parametrize("after", [1, 2, 4, 5, 6, 9, 11, 14])
def test_interrupted_at_any_step_and_resumed(tmp_path, after, own_generator):
    path = tmp_path / "c.safetensors"
    objective = {} if own_generator else {"objective": lp.Linear() + lp.Orthogonality()}
    whole, records = _fit(loader=_loader(own_generator), **objective)
    if objective:
        objective = {"objective": lp.Linear() + lp.Orthogonality()}
    loader = _stopping(_loader(own_generator), after)
    with pytest.raises(Stopped):
        _fit(path, loader, checkpoint_every=1, **objective)
    torch.manual_seed(99)
    resumed, later = _fit(path, _loader(own_generator), resume=True, **objective)
    assert _same(whole, resumed)
    assert later[-1].losses == records[-1].losses
    assert [r.number for r in later] == [r.number for r in records][-len(later) :]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_and_stop_between_two_steps(tmp_path, number):
    path = tmp_path / "c.safetensors"
    whole, _ = _fit()

    class Kicks(Looks):
        def backward(self, step):
            super().backward(step)
            if self.seen == 8:
                os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    with pytest.raises(TrainingInterrupted, match="after epoch 1, step 3") as stop:
        _fit(path, objective=Kicks())
    assert stop.value.code == 128 + number
    assert signal.getsignal(number) is before
    assert _same(whole, _fit(path, resume=True)[0])


def test_two_checkpoints_are_kept(tmp_path):
    path = tmp_path / "c.safetensors"
    for value in range(4):
        checkpoint.save({"value": value, "weight": torch.full((3,), float(value))}, path)
    assert checkpoint.load(path)["value"] == 3
    assert checkpoint.load(previous(path))["value"] == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.previous.safetensors", path.name]


def test_every_flipped_bit_is_found(tmp_path):
    path = tmp_path / "c.safetensors"
    state = {"weight": torch.randn(4, 4), "steps": 17, "more": [torch.arange(3), "text"]}
    checkpoint.save(state, path)
    content = path.read_bytes()
    draw = random.Random(0)
    for _ in range(300):
        position, bit = draw.randrange(len(content)), draw.randrange(8)
        damaged = bytearray(content)
        damaged[position] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            loaded = checkpoint.load(path)
        except lp.UsageError:
            continue
        # Only padding may change unseen.
        assert torch.equal(loaded["weight"], state["weight"])
        assert loaded["steps"] == 17


@pytest.mark.parametrize("damage", ["truncate", "flip"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, damage):
    path = tmp_path / "c.safetensors"
    whole, _ = _fit(path)
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        content = content[: len(content) // 2]
    else:
        content[-100] ^= 4
    path.write_bytes(content)
    with pytest.warns(CheckpointWarning, match="continuing from the one before, c.previous"):
        resumed, history = _fit(path, resume=True)
    assert [record.number for record in history] == [3]
    assert _same(whole, resumed)
    for file in (path, previous(path)):
        file.write_bytes(b"nothing")
    with pytest.raises(lp.UsageError, match=r"damaged.*and so is the one before"):
        _fit(path, resume=True)


def test_leftovers_of_a_killed_writer_are_removed(tmp_path):
    path = tmp_path / "c.safetensors"
    _fit(path)
    (tmp_path / ".c.0123456789abcdef.safetensors").write_bytes(b"half a file")
    _fit(path, resume=True, epochs=4)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.previous.safetensors", path.name]


def _command(out, *more):
    return command("train", "multidigits", "--out", out, *more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "run"
    subprocess.run(_command(out, "--quiet", *OPTIONS), check=True, capture_output=True)
    return out


def _assert_same_run(run, whole):
    for name in ("checkpoint.safetensors", "front.json"):
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    for found, wanted in zip(notes(run), notes(whole), strict=True):
        varying = {"seconds": 0, "peak_memory": 0}
        assert {**found, **varying} == {**wanted, **varying}


KILLER = """
import os, sys, random, signal, time
from lorpman.cli.main import main
import lorpman.lab.runs.train, lightning_fabric, sklearn.datasets, matplotlib.figure

def die_while_writing(moment):
    # SIGKILL at the moment-th step on a checkpoint's files: opened to sync, linked, renamed, ...
    left = [moment]
    def hook(event, arguments):
        if event in ("open", "os.link", "os.chmod", "os.rename"):
            left[0] -= "checkpoint" in str(arguments[0])
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

kills, seed, *arguments = GIVEN
sys.argv = ["lorpman"]
draw, killed, writing = random.Random(int(seed)), 0, 0
while True:
    in_writing, moment = killed % 2 == 0, draw.randint(1, 12)
    child = os.fork()
    if child == 0:
        if killed < int(kills) and in_writing:
            die_while_writing(moment)
        main(arguments)
    if killed < int(kills) and not in_writing:
        time.sleep(draw.uniform(0.1, 0.6))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        print(killed, writing)
        sys.exit(os.waitstatus_to_exitcode(status))
    killed, writing = killed + 1, writing + in_writing
"""


def _kill_until_done(run, whole, kills, seed):
    """SIGKILL again and again, resume each time, and compare the end with ``whole``.

    The first kill and every other one come within the writing of a checkpoint, of which there is
    one at every step, the rest at a random time: soon, since the whole run takes a second. Children
    are forked from a process that has everything imported, so that almost every kill hits training
    itself. Gives back the kills of both kinds together, and those within a writing.
    """
    options = ["--quiet", "--checkpoint-every", "1", "--resume", *OPTIONS]
    given = [str(kills), str(seed), *_command(run, *options)[3:]]
    killer = KILLER.replace("GIVEN", repr(given))
    done = subprocess.run([sys.executable, "-c", killer], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _assert_same_run(run, whole)
    assert not list(run.glob(".*"))
    killed, writing = done.stdout.splitlines()[-1].split()
    return int(killed), int(writing)


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path, whole):
    killed, writing = _kill_until_done(tmp_path / "run", whole, kills=4, seed=0)
    assert killed >= 2
    assert writing >= 1


@pytest.mark.soak
def test_killed_at_twenty_random_moments(tmp_path, whole):
    killed = writing = seed = 0
    while killed < 20:
        run = tmp_path / f"run-{seed}"
        more, within = _kill_until_done(run, whole, kills=20 - killed, seed=seed)
        killed, writing, seed = killed + more, writing + within, seed + 1
        shutil.rmtree(run)
    assert writing >= 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.soak), (signal.SIGTERM, 143)],
)
def test_a_signal_ends_the_command_cleanly(tmp_path, whole, number, code):
    run = tmp_path / "run"
    with subprocess.Popen(_command(run, *OPTIONS), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline().startswith("epoch 1/3")
        process.send_signal(number)
        rest = process.stderr.read()
    assert process.returncode == code
    assert rest.splitlines()[-1].startswith(f"lorpman: stopped by signal {number} after epoch ")
    assert "Traceback" not in rest
    subprocess.run([*_command(run, "--quiet", "--resume", *OPTIONS)], check=True)
    _assert_same_run(run, whole)


def _fill(disk):
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(b"0" * 1024)


@pytest.mark.slow
def test_a_full_disk_stops_training_and_keeps_the_last_checkpoint(tmp_path, whole):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    try:
        run = disk / "run"
        first = [*_command(run, "--quiet", *OPTIONS)]
        with subprocess.Popen(
            _command(run, *OPTIONS), stderr=subprocess.PIPE, text=True
        ) as process:
            for _ in range(2):  # when the second epoch ends, the first one is saved
                process.stderr.readline()
            _fill(disk)
            rest = process.stderr.read()
        assert process.returncode == 2, rest
        assert "No space left on device" in rest
        assert "Traceback" not in rest
        (disk / "filler").unlink()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            checkpoint.load(run / "checkpoint.safetensors")
        subprocess.run([*first, "--resume"], check=True, capture_output=True)
        _assert_same_run(run, whole)
    finally:
        for _ in range(20):
            if subprocess.run(["umount", disk], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
