"""Whole commands with several processes on one machine, over gloo."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from command_line import command, notes, settings
from lorpman.errors import ProcessLost
from lorpman.training import checkpoint

SETTINGS = ("watch_samples=50", "freeze_epoch=1", "batch_size=512", "lambda_p=0")
OPTIONS = ["--epochs", "3", *settings(*SETTINGS)]
TWO = ["--devices", "2", "--strategy", "ddp"]


def _command(out, *more):
    return command("train", "multidigits", "--out", out, *OPTIONS, *more)


def _assert_same_curve(left, right, tolerance=1e-5):
    for ours, theirs in zip(notes(left), notes(right), strict=True):
        assert ours["frozen"] == theirs["frozen"]
        for task, loss in ours["losses"].items():
            assert loss == pytest.approx(theirs["losses"][task], rel=tolerance)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "run"
    subprocess.run(_command(out, "--quiet"), check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_two_processes_give_the_loss_curve_of_one(tmp_path, alone):
    out = tmp_path / "run"
    done = subprocess.run(
        _command(out, "--quiet", *TWO, "--preferences", "same"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("test hypervolume") == 1  # only the first process speaks and writes
    assert [note["frozen"] for note in notes(out)] == [False, True, True]
    _assert_same_curve(out, alone)
    described = json.loads((out / "run.json").read_text())
    assert described["engine"]["devices"] == 2
    refused = subprocess.run(_command(out, "--resume"), capture_output=True, text=True)
    assert refused.returncode == 2
    assert "was trained with other devices or precision" in refused.stderr


@pytest.mark.soak
def test_the_same_under_torchrun(tmp_path, alone):
    out = tmp_path / "run"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    started = _command(out, "--quiet", "--preferences", "same")[1:]
    done = subprocess.run(
        [*launcher, "--master-port", "29617", *started], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    _assert_same_curve(out, alone)


def _children(pid):
    """Processes whose parent is ``pid``, from /proc."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may be gone by now
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="finds processes in /proc")
@pytest.mark.parametrize("first_dies", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.slow
def test_one_process_dying_ends_the_run_with_a_message(tmp_path, first_dies):
    out = tmp_path / "run"
    started = _command(out, *TWO, "--epochs", 200)
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(2):  # when the second epoch ends, the first one is saved
            assert process.stderr.readline().startswith("epoch ")
        (child,) = _children(process.pid)
        os.kill(process.pid if first_dies else child, signal.SIGKILL)
        rest = process.stderr.read()  # ends when both processes have
    assert process.returncode == (-signal.SIGKILL if first_dies else ProcessLost.code)
    (said,) = [line for line in rest.splitlines() if not line.startswith("epoch ")]
    assert said.startswith("lorpman: ")
    assert said.endswith("this run is ended, continue it with --resume")
    checkpoint.load(out / "checkpoint.safetensors")


@pytest.mark.soak
def test_two_processes_resume_bit_by_bit(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(_command(whole, "--quiet", *TWO), check=True, capture_output=True)
    started = _command(cut, *TWO)
    with subprocess.Popen(started, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr.readline().startswith("epoch 1/3")
        process.send_signal(signal.SIGTERM)  # to the first process alone
        rest = process.stderr.read()
    assert process.returncode == 143
    assert rest.count("stopped by signal 15") == 1
    assert "has died" not in rest
    subprocess.run([*started, "--resume", "--quiet"], check=True, capture_output=True)
    for name in ("checkpoint.safetensors", "front.json"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
