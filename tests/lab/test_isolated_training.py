import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lorpman import Front
from lorpman.lab.isolated_training import try_training
from lorpman.lab.runs.epoch_log import read_epoch_log
from lorpman.lab.runs.spec import Spec

QUICK = {"epochs": 1, "batch_size": 1000, "watch_samples": 0}


def test_a_run_of_its_own_process_is_the_same_run(tmp_path):
    spec = Spec.make("multidigits", "pamal", 0, QUICK)
    fronts = []
    for name, isolate in (("here", False), ("there", True)):
        assert try_training(spec, tmp_path / name, tmp_path, isolate, progress=False) is None
        fronts.append(Front.load(tmp_path / name / "front.json"))
    assert fronts[0].scores.tolist() == fronts[1].scores.tolist()
    peak = max(note.get("peak_memory", 0) for note in read_epoch_log(tmp_path / "there"))
    assert 100 * 2**20 < peak < 4 * 2**30


@pytest.mark.parametrize("isolate", [False, True])
def test_a_failure_is_an_answer(tmp_path, isolate):
    spec = Spec.make("multimnist", "lorpman", 0, QUICK)
    reason = try_training(spec, tmp_path / "run", tmp_path / "empty", isolate, progress=False)
    assert "lorpman data multimnist" in reason
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to see processes")
def test_a_killed_comparison_leaves_no_training_behind(tmp_path):
    command = [sys.executable, "-m", "lorpman", "compare", "multidigits", "--seeds", "0"]
    command += ["--out", str(tmp_path), "--set", "epochs=1000", "--set", "freeze_epoch=null"]
    parent = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _until(lambda: list(tmp_path.glob("*/metrics.jsonl")))
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        assert children
    finally:
        parent.kill()
        parent.wait()
    _until(lambda: not any(_running(child) for child in children))


def _until(holds, seconds=90):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def _running(pid):
    try:
        os.kill(int(pid), 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):
        return False
    return state != "Z"
