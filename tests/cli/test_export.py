"""``lorpman export``: a network as a file with a card."""

import json
import re

import pytest

from command_line import files, refused, run


def test_export_writes_a_file_and_its_card(capsys, trained, tmp_path):
    to = tmp_path / "model.safetensors"
    code, out, _ = run(capsys, "export", trained, "--alpha", "0.3,0.7", "--to", to)
    assert code == 0
    assert re.search(r"^test        left 0\.\d{4}  right 0\.\d{4}$", out, re.MULTILINE)
    card = json.loads((tmp_path / "model.safetensors.card.json").read_text())
    assert (card["problem"], card["method"]) == ("multidigits", "lorpman")
    assert card["settings"]["epochs"] == 1
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
    assert "it is a part of the run there" in message
    assert files(trained) == before
