"""Training into a directory; whole commands killed at any moment, and on a full disk."""

import shutil
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress

import pytest

from command_line import command, files, notes, settings
from lorpman import UsageError
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train
from lorpman.training import checkpoint
from soak_size import soaked

SETTINGS = ("watch_samples=50", "freeze_epoch=1", "batch_size=512")
OPTIONS = ["--epochs", "3", *settings(*SETTINGS)]


def _train_toy(out, seed=0, **overrides):
    spec = Spec.make("toy", "lorpman", seed, {"epochs": 2, **overrides})
    return train(spec, out, out, progress=False)


def test_a_run_leaves_its_files_and_tells_what_it_did(tmp_path):
    out = tmp_path / "run"
    result = _train_toy(out)
    assert {str(path) for path in files(out)} == {
        *["run.json", "metrics.jsonl", "front.json", "front.png", "toy.png"],
        *["checkpoint.safetensors", "checkpoint.previous.safetensors"],
    }
    assert result.network_parameters == 2
    assert result.seconds == sum(line.get("seconds", 0) for line in notes(out))
    assert result.front.label == "lorpman"
    assert result.note == ""


def test_the_seed_decides_every_number_of_a_run(tmp_path):
    for name, seed in (("one", 0), ("two", 0), ("other", 1)):
        _train_toy(tmp_path / name, seed)
    one, two, other = (
        (tmp_path / name / "checkpoint.safetensors").read_bytes()
        for name in ("one", "two", "other")
    )
    assert one == two != other


@pytest.mark.parametrize(("samples", "watched"), [(0, False), (640, True)])
def test_validation_is_watched_on_so_many_samples(tmp_path, samples, watched):
    _train_toy(tmp_path / "run", watch_samples=samples)
    volumes = [line["hypervolume"] for line in notes(tmp_path / "run")[1:]]
    assert [volume is not None for volume in volumes] == [watched] * 2


def test_what_cannot_be_frozen_is_refused_before_anything_is_written(tmp_path):
    out = tmp_path / "run"
    spec = Spec.make("multidigits", "pamal", 0, {"freeze_epoch": 1})
    with pytest.raises(UsageError, match="has no main network to freeze"):
        train(spec, out, tmp_path, progress=False)
    assert not out.exists()


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
    in_writing, moment = killed % 3 == 0, draw.randint(1, 12)
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

    The first kill and every third one come within the writing of a checkpoint, of which there is
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
def test_killed_at_forty_random_moments(tmp_path, whole):
    killed = writing = seed = 0
    kills = soaked(40)
    while killed < kills:
        run = tmp_path / f"run-{seed}"
        more, within = _kill_until_done(run, whole, kills=kills - killed, seed=seed)
        killed, writing, seed = killed + more, writing + within, seed + 1
        shutil.rmtree(run)
    assert writing >= kills // 8
    assert killed - writing >= kills // 2


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.soak), (signal.SIGTERM, 143)],
)
@pytest.mark.slow
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
