import json
import re
import shlex
import subprocess

import pytest

from command_line import command, refused, run
from lorpman.errors import UsageError
from lorpman.lab.sweep import Sweep
from lorpman.lab.tune import tune
from lorpman.lab.workers import Workers

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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "has no ranges for lorpman; give some with --search"),
        (["--search", "scale"], "--search expects key=value,value, found 'scale'"),
        (["--search", "scle=1,2"], "unknown setting 'scle'; did you mean 'scale'?"),
        (["--search", "rank=0,1"], "setting rank: "),
        (["--search", "scale=1,2", "--trials", "0"], "trials must be a whole number of at least 1"),
    ],
)
def test_bad_input_is_refused(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "tune", "toy", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_study_file_is_left_alone(capsys, tmp_path):
    (tmp_path / "study").write_text("years of work\n")
    options = ["--search", "scale=1,2", "--epochs", 1, "--study", tmp_path / "study"]
    assert "not a study of lorpman" in refused(capsys, "tune", "toy", *options)
    assert (tmp_path / "study").read_text() == "years of work\n"


def test_the_command_is_one_that_can_be_given(capsys, tmp_path):
    """Words, null and settings given are told as ``train`` reads them."""
    options = ["--search", "freeze_epoch=null", "--set", "optimizer=sgd", "--epochs", 1]
    code, out, _ = run(capsys, "tune", "toy", *options, "--study", tmp_path / "s", "--seed", 4)
    assert code == 0
    told = next(line for line in out.splitlines() if line.startswith("train it with: lorpman "))
    arguments = shlex.split(told)[4:]
    assert run(capsys, *arguments, "--quiet", "--out", tmp_path / "run")[0] == 0
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["seed"] == 4
    settings = described["settings"]
    assert (settings["optimizer"], settings["epochs"], settings["freeze_epoch"]) == ("sgd", 1, None)


def test_no_combination_is_tried_twice(tmp_path):
    said = []
    for _ in range(2):
        study = tune(_sweep(scale=[1, 2]), 5, tmp_path / "study", tmp_path, said.append)
    assert sorted(trial.params["scale"] for trial in study.trials) == [1, 2]
    assert len(said) == 2


def test_a_trial_that_was_interrupted_is_tried_again(tmp_path, monkeypatch):
    file = tmp_path / "study"

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lorpman.lab.tune.fit_spec", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tune(_sweep(scale=[1, 2]), 2, file, tmp_path, print)
    study = tune(_sweep(scale=[1, 2]), 2, file, tmp_path, print)
    ended = [trial.params["scale"] for trial in study.trials if trial.value is not None]
    assert sorted(ended) == [1, 2]


def test_other_ranges_are_another_study_of_the_same_file(tmp_path):
    file = tmp_path / "study"
    tune(_sweep(scale=[1, 2]), 2, file, tmp_path, print)
    study = tune(_sweep(scale=[1, 2, 4]), 3, file, tmp_path, print)
    assert sorted(trial.params["scale"] for trial in study.trials) == [1, 2, 4]


def test_settings_that_diverge_are_told_and_not_tried_again(capsys, tmp_path):
    options = ["--search", "learning_rate=1e30,1e31", "--epochs", 2, "--study", tmp_path / "s"]
    for trials in (2, 0):
        code, out, err = run(capsys, "tune", "toy", *options)
        assert code == 2
        assert out.count("diverged") == trials
        assert "no trial of the study" in err
    sweep = _sweep(learning_rate=[1e-3, 1e30])
    study = tune(sweep, 2, tmp_path / "s", tmp_path, print)
    assert study.best_trial.params == {"learning_rate": 1e-3}


@pytest.mark.slow
def test_two_trials_at_once_find_what_one_after_the_other_finds(tmp_path):
    said = []
    alone = tune(_sweep(), 3, tmp_path / "alone", tmp_path, said.append)
    workers = Workers(jobs=2)
    both = tune(_sweep(), 3, tmp_path / "both", tmp_path, said.append, workers)

    def found(study):
        return {trial.params["scale"]: trial.value for trial in study.trials}

    assert found(both) == found(alone)
    assert len(said) == 6
    again = tune(_sweep(), 3, tmp_path / "both", tmp_path, said.append, workers)
    assert len(again.trials) == 3


def test_a_search_without_its_scheduler_leaves_nothing_behind(tmp_path):
    pytest.importorskip("distributed")
    workers = Workers(scheduler="tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="no Dask scheduler answers"):
        tune(_sweep(), 3, tmp_path / "study", tmp_path, print, workers)
    assert list(tmp_path.iterdir()) == []


def test_trials_whose_processes_all_die_end_the_search(tmp_path, monkeypatch):
    monkeypatch.setattr("lorpman.lab.tune._try_apart", lambda *call: None)
    with pytest.raises(UsageError, match="the processes of all trials died"):
        tune(_sweep(), 3, tmp_path / "study", tmp_path, print, Workers(jobs=2))


@pytest.mark.soak
def test_two_workers_share_a_study_file(tmp_path):
    """Also when a third one is killed in the middle of a trial."""
    started = command("tune", "toy", "--epochs", 3, "--trials", 8, "--study", tmp_path / "s")
    started += ["--search", "scale=0.5,1,2,4", "--search", "rank=1,2"]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True) as killed:
        lines = [killed.stdout.readline()]  # one trial is told, the next one runs
        killed.kill()
        lines += killed.stdout.readlines()
    workers = [subprocess.Popen(started, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [worker.communicate()[0].splitlines() for worker in workers]
    assert all(worker.returncode == 0 for worker in workers)
    assert all(any(" scale=" in line for line in lines[:-3]) for lines in told), told
    lines += [line for lines in told for line in lines[:-3]]
    assert len({re.search(r"scale=.*", line)[0] for line in lines}) == 8
    best = {line for lines in told for line in lines if line.startswith("best ")}
    assert len(best) == 1, "both saw the whole study"
