"""What is done with a finished run: choosing and exporting, on the command line."""

import csv
import json
import re
import shutil

import pytest

from command_line import files, notes, refused, run
from lorpman.cli.main import main


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "digits"
    options = ["--epochs", "2", "--quiet", "--set", "watch_samples=100"]
    with pytest.raises(SystemExit) as stop:
        main(["train", "multidigits", "--out", str(out), *options])
    assert stop.value.code == 0
    return out


def test_select_chooses_on_validation_and_reports_on_test(capsys, trained):
    code, out, _ = run(
        capsys, "select", trained, "--at-least", "left=0.2", "--best", "right", "--evaluations", 6
    )
    assert code == 0
    assert re.search(r"^alpha       0\.\d+,0\.\d+$", out, re.MULTILINE) or "alpha       " in out
    for split in ("validation", "test"):
        assert re.search(rf"^{split} +left 0\.\d{{4}}  right 0\.\d{{4}}$", out, re.MULTILINE)
    assert "evaluations 1" in out
    assert "(grid and search)" in out
    code, out, _ = run(
        capsys, "select", trained, "--at-least", "left=1.5", "--knee", "--evaluations", 0
    )
    assert code == 0
    assert out.startswith("no preference keeps the bounds")
    assert "evaluations 11 networks on validation data (grid only)" in out


@pytest.mark.parametrize(
    ("demand", "message"),
    [
        ([], "select needs exactly one of --best"),
        (["--knee", "--best", "left"], "select needs exactly one of --best"),
        (["--best", "lft"], "unknown task 'lft'; did you mean 'left'?"),
        (["--at-least", "left", "--knee"], "--at-least expects task=number, found 'left'"),
        (["--at-most", "left=0.3", "--knee"], "at_most cannot bound 'left'"),
        (["--utility", "left=-1"], "a weight must be 0 or more"),
        (["--target", "left=nan"], "must be finite"),
        (["--target", "left=1", "--target", "left=0.5"], "--target expects each task once"),
        (["--utility", "left=0"], "--utility needs a weight above 0"),
    ],
)
def test_a_bad_demand_is_refused(capsys, trained, demand, message):
    assert message in refused(capsys, "select", trained, *demand)


def test_export_writes_a_file_and_its_card(capsys, trained, tmp_path):
    to = tmp_path / "model.safetensors"
    code, out, _ = run(capsys, "export", trained, "--alpha", "0.3,0.7", "--to", to)
    assert code == 0
    assert re.search(r"^test        left 0\.\d{4}  right 0\.\d{4}$", out, re.MULTILINE)
    card = json.loads((tmp_path / "model.safetensors.card.json").read_text())
    assert (card["problem"], card["method"]) == ("multidigits", "lorpman")
    assert card["settings"]["epochs"] == 2
    assert set(card["scores"]) == {"validation", "test"}
    code, out, _ = run(capsys, "export", trained, "--alpha", "any", "--to", tmp_path / "m.pt2")
    assert code == 0
    assert "any batch size" in out
    assert len(json.loads((tmp_path / "m.pt2.card.json").read_text())["front"]) == 11


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--alpha", "0.3,0.3,0.4", "--to", "m.safetensors"], "--alpha expects 2 weights"),
        (["--alpha", "0.3,0.3", "--to", "m.safetensors"], "alpha must sum to 1"),
        (["--alpha", "most", "--to", "m.safetensors"], "found 'most'"),
        (["--alpha", "0.3,0.7", "--to", "m.pickle"], "unknown file format '.pickle'"),
        (["--alpha", "0.3,0.7", "--to", "no/m.onnx"], "there is no folder 'no'"),
        (["--alpha", "any", "--to", "m.safetensors"], "holds one network"),
        (["--alpha", "any", "--to", "m.pt2", "--recalibrate", "2"], "one preference in --alpha"),
        (["--alpha", "0.3,0.7", "--to", "m.pt2", "--recalibrate", "2"], "has no BatchNorm"),
    ],
)
def test_a_bad_export_is_refused(capsys, trained, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, "export", trained, *options)
    assert list(tmp_path.iterdir()) == []


def test_an_export_never_replaces_the_run(capsys, trained):
    before = files(trained)
    to = trained / "checkpoint.safetensors"
    message = refused(capsys, "export", trained, "--alpha", "0.3,0.7", "--to", to)
    assert "is the checkpoint of a run" in message
    assert files(trained) == before


@pytest.mark.parametrize(
    "command",
    [
        ["select", "--best", "left"],
        ["export", "--alpha", "0.3,0.7", "--to", "m.safetensors"],
        ["train", "--resume"],
    ],
)
@pytest.mark.parametrize(
    ("damage", "message"),
    [("version", "was written by another version"), ("network", "is of another network")],
)
def test_a_run_that_does_not_fit_is_refused_and_kept(
    capsys, trained, tmp_path, monkeypatch, command, damage, message
):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "run"
    shutil.copytree(trained, out)
    described = json.loads((out / "run.json").read_text())
    described["format" if damage == "version" else "settings"] = (
        99 if damage == "version" else {**described["settings"], "rank": 7}
    )
    (out / "run.json").write_text(json.dumps(described))
    before = files(out)
    name, *options = command
    arguments = [name, out, *options]
    if name == "train":
        settings = ["--epochs", 2, "--set", "watch_samples=100", "--set", "rank=7", "--quiet"]
        arguments = ["train", "multidigits", "--out", out, *options, *settings]
    assert message in refused(capsys, *arguments)
    assert files(out) == before
    assert list(tmp_path.iterdir()) == [out]


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
