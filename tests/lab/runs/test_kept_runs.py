"""Run directories of an earlier version, kept in tests/kept, still open with the same numbers."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import lorpman as lp
from command_line import notes, refused, run
from lorpman.training import checkpoint

KEPT = Path(__file__).parents[2] / "kept"
NAMES = ["toy", "multidigits"]


@pytest.fixture(params=NAMES)
def kept(request, tmp_path):
    """A copy of each kept run, which a command may write into."""
    return Path(shutil.copytree(KEPT / request.param, tmp_path / request.param))


@pytest.fixture
def toy(tmp_path):
    return Path(shutil.copytree(KEPT / "toy", tmp_path / "toy"))


def _assert_same_front(left, right):
    assert torch.equal(left.alphas, right.alphas)
    torch.testing.assert_close(left.scores, right.scores, atol=1e-3, rtol=1e-5)
    assert float(left.hypervolume()) == pytest.approx(float(right.hypervolume()), abs=1e-3)


def test_evaluation_gives_the_kept_front(capsys, kept):
    before = lp.Front.load(kept / "front.json")
    (kept / "front.json").unlink()
    code, out, err = run(capsys, "evaluate", kept)
    assert (code, err) == (0, "")
    assert f"test hypervolume {float(before.hypervolume()):.4f}" in out
    _assert_same_front(lp.Front.load(kept / "front.json"), before)


@pytest.mark.parametrize(
    ("name", "tasks", "maximise", "volume"),
    [("toy", ("f1", "f2"), False, 0.0), ("multidigits", ("left", "right"), True, 0.4252045)],
)
def test_a_kept_front_loads(name, tasks, maximise, volume):
    front = lp.Front.load(KEPT / name / "front.json")
    assert tuple(front.tasks) == tasks
    assert list(front.maximise) == [maximise] * 2
    assert front.scores.shape == (11, 2)
    assert float(front.hypervolume()) == pytest.approx(volume, abs=1e-12)


def test_selection_chooses_what_it_chose(capsys):
    code, out, _ = run(
        capsys, "select", KEPT / "multidigits", "--at-least", "left=0.5", "--best", "right"
    )
    assert code == 0
    assert out.splitlines()[:3] == [
        "alpha       0.471875,0.528125",
        "validation  left 0.5027  right 0.5187",
        "test        left 0.5410  right 0.5740",
    ]


def test_a_report_is_written(capsys, kept):
    pytest.importorskip("dash")
    code, _, err = run(capsys, "report", kept)
    assert (code, err) == (0, "")
    text = (kept / "report.html").read_text()
    settings = json.loads((kept / "run.json").read_text())["settings"]
    assert all(name in text for name in settings)


def test_more_epochs_are_another_run(capsys, toy):
    said = refused(capsys, "train", "toy", "--out", toy, "--epochs", 5, "--resume")
    assert "holds a run with other settings; resume it with the settings in" in said


def test_training_goes_on_from_a_kept_checkpoint(capsys, toy):
    """The last epoch is lost, and done again: the same losses, weights and front."""
    expected = checkpoint.load(toy / "checkpoint.safetensors")
    (toy / "checkpoint.previous.safetensors").replace(toy / "checkpoint.safetensors")
    (toy / "front.json").unlink()
    command = ["train", "toy", "--out", toy, "--epochs", 3, "--resume", "--quiet"]
    code, _, err = run(capsys, *command)
    assert (code, err) == (0, "")
    kept = notes(KEPT / "toy")
    assert [line["number"] for line in notes(toy)] == [0, 1, 2, 3]
    assert notes(toy)[:3] == kept[:3]
    assert notes(toy)[3]["losses"] == pytest.approx(kept[3]["losses"], rel=1e-5)
    resumed = checkpoint.load(toy / "checkpoint.safetensors")
    assert resumed.keys() == expected.keys()
    for name, value in expected["model"].items():
        torch.testing.assert_close(resumed["model"][name], value)
    _assert_same_front(lp.Front.load(toy / "front.json"), lp.Front.load(KEPT / "toy/front.json"))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_to_do_in_a_finished_run(name):
    assert checkpoint.epochs_done(KEPT / name / "checkpoint.safetensors") == 3
