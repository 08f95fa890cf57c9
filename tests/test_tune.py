import subprocess
import sys

import pytest

from lorpman.tune import Sweep, tune
from test_commands import refused, run

pytest.importorskip("optuna")
QUICK = {"epochs": 2}


def _sweep(**ranges):
    return Sweep.make("toy", "lorpman", 0, QUICK, ranges or {"scale": [0.5, 1, 2]})


def test_a_study_is_continued_and_tries_every_combination_once(tmp_path):
    said = []
    file = tmp_path / "deep" / "study"
    tune(_sweep(), 1, file, tmp_path, said.append)
    assert len(said) == 1
    study = tune(_sweep(), 3, file, tmp_path, said.append)
    assert len(study.trials) == 3
    study = tune(_sweep(), 3, file, tmp_path, said.append)
    assert len(study.trials) == 3  # nothing left to do
    grid = tune(_sweep(), 3, tmp_path / "other", tmp_path, said.append)
    assert sorted(trial.params["scale"] for trial in grid.trials) == [0.5, 1, 2]
    assert grid.best_value == max(trial.value for trial in grid.trials)


def test_the_presets_ranges_are_those_of_the_paper():
    assert Sweep.make("multimnist", "lorpman", 0, {}, {}).ranges == {
        "scale": [1, 2, 4, 6],
        "freeze_epoch": [4, 6, 8],
    }
    fixed = Sweep.make("multimnist", "lorpman", 0, {"scale": 2}, {})
    assert fixed.ranges == {"freeze_epoch": [4, 6, 8]}
    assert fixed.combinations() == 3
    # A range of whole numbers stays one, though the preset holds floats.
    assert fixed.spec({"freeze_epoch": 4.0}).training.freeze_epoch == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "has no ranges for lorpman; give some with --search"),
        (["--search", "scale"], "--search expects key=value,value, found 'scale'"),
        (["--search", "scle=1,2"], "unknown setting 'scle'; did you mean 'scale'?"),
        (["--search", "rank=0,1"], "setting rank: "),
        (["--search", "scale=1,2", "--trials", "0"], "trials must be at least 1"),
    ],
)
def test_bad_input_is_refused(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "tune", "toy", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_study_file_is_left_alone(capsys, tmp_path):
    (tmp_path / "study").write_text("years of work\n")
    options = ["--search", "scale=1,2", "--epochs", 1, "--study", tmp_path / "study"]
    assert "as a study file" in refused(capsys, "tune", "toy", *options)
    assert (tmp_path / "study").read_text() == "years of work\n"


def test_the_command_says_how_to_train_the_best(capsys, tmp_path):
    options = ["--search", "scale=1,2", "--epochs", 1, "--trials", 2]
    code, out, _ = run(capsys, "tune", "toy", *options, "--study", tmp_path / "s")
    assert code == 0
    assert "train it with: lorpman train toy --method lorpman --set scale=" in out


@pytest.mark.soak
def test_two_workers_share_a_study_file(tmp_path):
    command = [sys.executable, "-m", "lorpman", "tune", "toy", "--epochs", "3", "--trials", "8"]
    command += ["--search", "scale=0.5,1,2,4", "--search", "rank=1,2", "--study", tmp_path / "s"]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [worker.communicate()[0] for worker in workers]
    assert all(worker.returncode == 0 for worker in workers)
    trials = [line for out in told for line in out.splitlines() if " scale=" in line[:40]]
    assert len(trials) >= 8
    best = {line for out in told for line in out.splitlines() if line.startswith("best ")}
    assert best
