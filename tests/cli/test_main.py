import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from command_line import command, files, notes, refused, run
from lorpman._files import locked_folder
from lorpman.cli.main import main
from lorpman.front.front import Front

QUICK = ["--epochs", "1", "--quiet", "--set", "watch_samples=100"]


def describe(run, **changes):
    path = run / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "digits"
    with pytest.raises(SystemExit) as stop:
        main(["train", "multidigits", "--out", str(out), *QUICK])
    assert stop.value.code == 0
    return out


def test_problems_and_methods_are_listed_one_per_line(capsys):
    code, out, _ = run(capsys, "problems")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} >= {"toy", "multidigits"}
    code, out, _ = run(capsys, "methods")
    assert code == 0
    assert "lorpman" in {line.split()[0] for line in out.splitlines()}


@pytest.mark.parametrize("arguments", [[], ["--help"], ["train", "--help"], ["evaluate", "--help"]])
def test_help(capsys, arguments):
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "Usage: " in out


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
    assert described["versions"]["torch"] == torch.__version__
    (note,) = notes(trained)
    assert set(note["losses"]) == {"left", "right"}
    assert note["hypervolume"] > 0
    assert (trained / "front.png").read_bytes().startswith(b"\x89PNG")


def test_evaluate_gives_the_front_of_training_again(capsys, trained):
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "multidigit"], "did you mean 'multidigits'?"),
        (["train", "toy", "--method", "lorpmn"], "did you mean 'lorpman'?"),
        (["train", "toy", "--set", "rank"], "--set expects key=value, found 'rank'"),
        (["train", "toy", "--set", "=3"], "--set expects key=value"),
        (["train", "toy", "--set", "rank=["], "cannot read the value"),
        (["train", "toy", "--set", "rnk=3"], "unknown setting 'rnk'; did you mean 'rank'?"),
        (["train", "toy", "--set", "rank=many"], "setting rank: Input should be a valid integer"),
        (["train", "toy", "--set", "rank=0"], "setting rank: Input should be greater than"),
        (["train", "toy", "--set", "scheduler=linear"], "setting scheduler: "),
        (["train", "toy", "--epochs", "0"], "setting epochs: "),
        (["train", "toy", "--epochs", "x"], "Invalid value for '--epochs'"),
        (["train"], "Missing argument 'PROBLEM'"),
        (["train", "toy", "--colour", "red"], "No such option: --colour"),
        (["frob"], "No such command 'frob'"),
        (["evaluate", "nowhere"], "no run directory at nowhere"),
        (["compare", "toy", "--methods", "lorpman,pamall"], "did you mean 'pamal'?"),
        (["compare", "toy", "--methods", "lorpman,"], "--methods expects different names"),
        (["compare", "toy", "--seeds", "0,x"], "--seeds expects whole numbers, found 'x'"),
        (["compare", "toy", "--seeds", "0,0"], "--seeds expects different names"),
        (["compare", "toy", "--scale", "huge"], "Invalid value for '--scale'"),
        (["train", "toy", "--seed", "-1"], "Invalid value for '--seed'"),
        (["train", "toy", "--seed", 2**63], "Invalid value for '--seed'"),
        (["train", "toy", "--out", "x" * 300], "cannot write to"),
        (["evaluate", "x" * 300], "no run directory at"),
        (["train", "toy", "--set", "freeze_epoch=no"], "use null for never"),
        (["train", "toy", "--method", "pamal", "--set", "freeze_epoch=1"], "no main network"),
        (["compare", "toy", "--set", "rnk=3"], "did you mean 'rank'?"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    capsys, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, *arguments)
    assert files(tmp_path) == {}


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


def test_compare_prints_the_table(capsys, tmp_path):
    code, out, _ = run(
        capsys, "compare", "toy", "--methods", "pamal", "--seeds", "0", "--out", tmp_path,
        "--set", "epochs=1", "--quiet",
    )  # fmt: skip
    assert code == 0
    assert out.splitlines()[2].startswith("| pamal | ")
    assert (tmp_path / "comparison.md").read_text() in out


def test_every_file_of_a_run_has_the_usual_permissions(trained):
    assert len({path.stat().st_mode for path in trained.iterdir()}) == 1


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


def test_a_freeze_epoch_that_never_comes_is_told(capsys, tmp_path):
    options = ["--out", tmp_path / "r", "--quiet", "--epochs", 1, "--set", "freeze_epoch=1"]
    code, _, err = run(capsys, "train", "toy", *options)
    assert code == 0
    assert "the main network was never frozen" in err


def test_an_unknown_split(capsys, trained):
    assert "unknown split 'tst'; did you mean 'test'?" in refused(
        capsys, "evaluate", trained, "--split", "tst"
    )


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


def test_import_stays_light():
    heavy = ("lightning_fabric", "matplotlib", "sklearn", "pydantic", "rich", "typer", "scipy")
    code = f"import sys, lorpman; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
