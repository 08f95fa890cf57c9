"""``lorpman evaluate``: the front again, and runs that cannot be opened."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from command_line import refused, run
from lorpman.front.front import Front


def describe(run, **changes):
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_evaluate_gives_the_front_of_training_again(capsys, tmp_path, trained):
    trained = shutil.copytree(trained, tmp_path / "run")
    before = Front.load(trained / "front.json")
    code, out, _ = run(capsys, "evaluate", trained)
    assert code == 0
    assert f"test hypervolume {before.hypervolume():.4f}" in out
    order = before.order()
    assert f"order {order.correlation:.2f}  (more weight scores worse in {order.violations}" in out
    assert torch.equal(Front.load(trained / "front.json").scores, before.scores)
    code, out, _ = run(capsys, "evaluate", trained, "--split", "validation")
    assert code == 0
    assert (trained / "front-validation.json").exists()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "run.json").write_text("{"), "cannot be read"),
        (lambda run: (run / "run.json").write_text("[]"), "is not a run description"),
        (lambda run: (run / "run.json").unlink(), "no run at"),
        (lambda run: (run / "run.json").write_text('{"format": 99}'), "by another version"),
        (lambda run: describe(run, settings=[1]), "run.json is not a run description: settings"),
        (lambda run: describe(run, seed="abc"), "run.json is not a run description: seed"),
        (lambda run: describe(run, problem=3), "run.json is not a run description: problem"),
        (lambda run: (run / "checkpoint.safetensors").unlink(), "no checkpoint at"),
        (lambda run: os.truncate(run / "checkpoint.safetensors", 100), "damaged or truncated"),
    ],
)
def test_a_damaged_run_is_named(capsys, tmp_path, trained, damage, message):
    shutil.copytree(trained, tmp_path / "run")
    damage(tmp_path / "run")
    assert message in refused(capsys, "evaluate", tmp_path / "run")


def test_evaluating_an_unfinished_run_says_so(capsys, tmp_path, trained):
    unfinished = shutil.copytree(trained, tmp_path / "run")
    settings = json.loads((unfinished / "run.json").read_text())["settings"]
    describe(unfinished, settings=settings | {"epochs": 3})
    code, out, err = run(capsys, "evaluate", unfinished)
    assert code == 0
    assert "test hypervolume" in out
    assert err == f"lorpman: {unfinished} has done 1 of 3 epochs\n"


def test_a_front_that_cannot_be_written_is_still_printed(capsys, monkeypatch, trained):
    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    code, out, err = run(capsys, "evaluate", trained)
    assert code == 2
    assert "test hypervolume" in out
    assert "Permission denied" in err
    assert err.count("\n") == 1


def test_an_unknown_split(capsys, trained):
    assert "unknown split 'tst'; did you mean 'test'?" in refused(
        capsys, "evaluate", trained, "--split", "tst"
    )


def test_of_many_tasks_no_table_is_printed(capsys, monkeypatch, trained):
    monkeypatch.setattr("lorpman.cli.evaluate._MOST_TASKS_IN_TABLE", 1)
    monkeypatch.setattr("lorpman.lab.runs.evaluation.save_front", lambda *arguments: None)
    code, out, _ = run(capsys, "evaluate", trained)
    assert code == 0
    assert out.startswith("test hypervolume")
