"""Fourteen kinds of damage to a checkpoint, and every command that opens a run."""

import json
import shutil
import signal
import subprocess
import urllib.request

import pytest
import torch
from safetensors.torch import save_file

from command_line import QUICK, command, files, run
from lorpman.training.checkpoint import previous

DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "a few bytes": lambda path: path.write_bytes(path.read_bytes()[:7]),
    "half a header": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a byte less": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "a byte more": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "a bit of the header": lambda path: _flip(path, 20),
    "a bit of the length": lambda path: _flip(path, 2),
    "a bit of a weight": lambda path: _flip(path, -9),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "text": lambda path: path.write_text("years of work"),
    "other tensors": lambda path: save_file({"a": torch.ones(3)}, path),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}
COMMANDS = {
    "evaluate": [],
    "select": ["--best", "left"],
    "export": ["--alpha", "0.5,0.5", "--to", "model.safetensors"],
    "report": [],
    "resume": [],
    "explore": [],
}


def _flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def check_page(copy):
    """The page stands, from the stored front, and says why nothing can be evaluated."""
    started = command("explore", copy, "--port", "0", "--no-browser")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(started, **pipes) as process:
        try:
            url = process.stdout.readline().split()[1]
            with urllib.request.urlopen(f"{url}_dash-layout", timeout=60) as answer:
                said = json.loads(answer.read())
            assert "Nothing can be evaluated live here: " in json.dumps(said)
        finally:
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert process.returncode == 0


def check(capsys, trained, folder, monkeypatch, damage, name):
    """One line that names the file, or success; and nothing changed that was there."""
    monkeypatch.chdir(folder)
    copy = folder / "run"
    shutil.copytree(trained, copy)
    DAMAGES[damage](copy / "checkpoint.safetensors")
    before = files(copy)
    if name == "explore":
        check_page(copy)
        assert files(copy) == before
        return
    if name == "resume":
        arguments = ["train", "multidigits", "--out", copy, "--resume", *QUICK]
    else:
        arguments = [name, copy, *COMMANDS[name]]
    code, _, err = run(capsys, *arguments)
    assert "Traceback" not in err
    if name == "report":  # which shows the stored front, and needs no weights
        assert code == 0
        return
    if name == "resume" and damage in ("missing", "empty"):
        return  # nothing to resume from, or nothing to lose: it begins anew
    assert code == 2
    assert err.count("\n") == 1
    assert "checkpoint" in err
    assert files(copy) == before


QUICKLY = [
    ("half", "evaluate"),
    ("a bit of a weight", "export"),
    ("a folder", "select"),
    pytest.param("zeros", "explore", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("damage", "name"), QUICKLY)
def test_a_damaged_run_is_one_line(capsys, trained, tmp_path, monkeypatch, damage, name):
    check(capsys, trained, tmp_path, monkeypatch, damage, name)


@pytest.mark.soak
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_to_every_command(capsys, trained, tmp_path, monkeypatch, damage, name):
    check(capsys, trained, tmp_path, monkeypatch, damage, name)


def test_the_whole_checkpoint_before_a_damaged_one_is_mentioned(capsys, trained, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    path = copy / "checkpoint.safetensors"
    shutil.copy(path, previous(path))
    _flip(path, -9)
    for words in (["evaluate"], ["select", "--best", "left"], ["export", "--alpha", "0.5,0.5"]):
        name, *options = words
        options += ["--to", tmp_path / "m.safetensors"] if name == "export" else []
        code, _, err = run(capsys, name, copy, *options)
        assert code == 2
        assert "the one before is whole" in err
        assert "checkpoint.previous.safetensors" in err
