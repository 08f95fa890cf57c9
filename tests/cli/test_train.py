"""``lorpman train``: what it writes, what it prints, and what it refuses."""

import csv
import json
import os
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from command_line import QUICK, command, files, notes, refused, run
from lorpman._files import locked_folder


def test_a_run_directory_is_complete(trained):
    names = {path.name for path in trained.iterdir()}
    assert names == {
        "run.json",
        "metrics.jsonl",
        "front.json",
        "front.png",
        "checkpoint.safetensors",
    }
    described = json.loads((trained / "run.json").read_text())
    assert described["problem"] == "multidigits"
    assert described["method"] == "lorpman"
    assert described["settings"]["epochs"] == 1
    assert described["versions"]["torch"] == version("torch")
    (note,) = notes(trained)
    assert set(note["losses"]) == {"left", "right"}
    assert note["hypervolume"] > 0
    assert (trained / "front.png").read_bytes().startswith(b"\x89PNG")


def test_every_file_of_a_run_has_the_usual_permissions(trained):
    assert len({path.stat().st_mode for path in trained.iterdir()}) == 1


def test_the_same_seed_repeats_bit_by_bit(capsys, tmp_path, trained):
    for name, seed in (("same", 0), ("other", 1)):
        code, *_ = run(
            capsys, "train", "multidigits", "--out", tmp_path / name, "--seed", seed, *QUICK
        )
        assert code == 0
    checkpoint, front = "checkpoint.safetensors", "front.json"
    for name in (checkpoint, front):
        assert (tmp_path / "same" / name).read_bytes() == (trained / name).read_bytes()
        assert (tmp_path / "other" / name).read_bytes() != (trained / name).read_bytes()


def test_settings_reach_the_run(capsys, tmp_path):
    code, out, _ = run(
        capsys, "train", "toy", "--out", tmp_path / "r", "--quiet", "--epochs", 1,
        "--set", "learning_rate=0.5", "--set", "scale=2",
    )  # fmt: skip
    assert code == 0
    settings = json.loads((tmp_path / "r" / "run.json").read_text())["settings"]
    assert (settings["learning_rate"], settings["scale"]) == (0.5, 2.0)
    assert "parameters        6  (one network: 2; PaMaL, one network per task: 4)" in out


def test_a_freeze_epoch_that_never_comes_is_told(capsys, tmp_path):
    options = ["--out", tmp_path / "r", "--quiet", "--epochs", 1, "--set", "freeze_epoch=1"]
    code, _, err = run(capsys, "train", "toy", *options)
    assert code == 0
    assert "the main network was never frozen" in err


def test_a_run_directory_is_never_overwritten(capsys, trained):
    before = files(trained)
    assert "already holds a run; pass --resume" in refused(
        capsys, "train", "multidigits", "--out", trained, *QUICK
    )
    assert "holds a run with other settings" in refused(
        capsys, "train", "multidigits", "--out", trained, "--resume", "--seed", 3, *QUICK
    )
    with locked_folder(trained, "held twice"):
        assert "is in use by another training" in refused(
            capsys, "train", "multidigits", "--out", trained, "--resume", *QUICK
        )
    assert files(trained) == before


def test_a_foreign_directory_is_left_alone(capsys, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert "not empty and holds no run" in refused(capsys, "train", "toy", "--out", tmp_path)
    assert files(tmp_path) == {Path("thesis.txt"): b"years of work"}


def test_an_unwritable_output_directory(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot write to" in refused(capsys, "train", "toy", "--out", tmp_path / "file" / "run")


def test_a_killed_run_resumes_to_the_same_bits(capsys, tmp_path):
    options = ["--epochs", "4", "--set", "watch_samples=100", "--set", "freeze_epoch=3"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert run(capsys, "train", "multidigits", "--out", whole, "--quiet", *options)[0] == 0
    started = command("train", "multidigits", "--out", cut, *options)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(started, env=environment, stderr=subprocess.PIPE, text=True) as process:
        # A line is printed at the end of every epoch: kill in the middle of the third.
        for _ in range(2):
            assert process.stderr.readline().startswith("epoch ")
        process.kill()
    assert len(notes(cut)) >= 1
    code, *_ = run(capsys, "train", "multidigits", "--out", cut, "--resume", "--quiet", *options)
    assert code == 0
    for name in ("checkpoint.safetensors", "front.json"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()
    assert [note["number"] for note in notes(cut)] == [1, 2, 3, 4]


def test_loggers_hold_what_the_metrics_hold(capsys, tmp_path):
    pytest.importorskip("tensorboard")
    out, options = tmp_path / "run", ["--quiet", "--logger", "csv", "--logger", "tensorboard"]
    assert run(capsys, "train", "toy", "--out", out, "--epochs", 3, *options)[0] == 0

    def check():
        rows = list(csv.DictReader((out / "csv" / "metrics.csv").read_text().splitlines()))
        assert [int(row["step"]) for row in rows] == [1, 2, 3]
        for row, note in zip(rows, notes(out)[1:], strict=True):
            assert float(row["loss/f1"]) == pytest.approx(note["losses"]["f1"])
        assert len(list((out / "tensorboard").glob("events.out.tfevents.*"))) == 1

    check()
    # The last epoch is lost and done again: no logger holds it twice.
    (out / "checkpoint.previous.safetensors").replace(out / "checkpoint.safetensors")
    resumed = run(capsys, "train", "toy", "--out", out, "--epochs", 3, "--resume", *options)
    assert resumed[0] == 0
    check()
    message = refused(capsys, "train", "toy", "--out", tmp_path / "no", "--logger", "wandb")
    assert "unknown logger 'wandb'" in message
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--checkpoint-every", "0"],
        ["--checkpoint-every", "-1"],
        ["--set", "window=1000000000000"],
        ["--set", "batch_size=1000000000000000000000"],
        ["--set", "learning_rate=1.0e+30"],
        ["--nodes", "2"],
        ["--epochs", "2", "--set", "epochs=5"],
        ["--logger", "nobody"],
    ],
)
def test_a_training_that_fails_leaves_nothing(capsys, tmp_path, monkeypatch, options):
    for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "RANK"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "runs").mkdir()
    out = tmp_path / "runs" / "deeper" / "run"
    code, _, err = run(capsys, "train", "multidigits", "--out", out, "--quiet", *options)
    assert code == 2
    assert err.startswith("lorpman: ")
    assert err.count("\n") == 1
    assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]


@pytest.mark.slow
def test_several_machines_without_their_environment_are_refused_within_seconds(tmp_path):
    """They would wait for each other in silence, for minutes."""
    started = time.monotonic()
    subprocess.run(command("--help"), check=True, capture_output=True)
    # Five seconds more than a command that does nothing needs, times three: both are noisy.
    limit = 3 * (time.monotonic() - started + 5)
    told = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")
    kept = {name: value for name, value in os.environ.items() if name not in told}
    done = subprocess.run(
        command("train", "multidigits", "--nodes", "2", "--out", tmp_path / "run"),
        # A rank alone looks like a launcher, and is none.
        env={**kept, "RANK": "0"},
        capture_output=True,
        text=True,
        timeout=limit,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("lorpman: nodes is 2, but MASTER_ADDR, MASTER_PORT, NODE_RANK")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
