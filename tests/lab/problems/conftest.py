"""The problems whose data cannot be shipped, end to end on small generated files."""

import json

import pytest
import torch

from lorpman.cli.main import main
from lorpman.front.front import Front


@pytest.fixture
def trains_and_evaluates(tmp_path, monkeypatch, capsys):
    """Check that a problem trains and evaluates on files that ``write(root)`` makes."""

    def check(problem, write, settings):
        monkeypatch.setenv("LORPMAN_CACHE", str(tmp_path / "cache"))
        write(tmp_path / "data")
        run, data = str(tmp_path / "run"), str(tmp_path / "data")
        options = [word for setting in settings for word in ("--set", setting)]
        command = ["train", problem, "--scale", "laptop", "--epochs", "1", "--quiet", *options]
        command += ["--out", run, "--data", data]
        for arguments in (command, ["evaluate", run, "--data", data]):
            with pytest.raises(SystemExit) as stop:
                main(arguments)
            assert stop.value.code == 0, capsys.readouterr().err
        front = Front.load(tmp_path / "run" / "front.json")
        assert torch.isfinite(front.scores).all()
        assert len(front) == {2: 11, 3: 66}.get(len(front.tasks), 100)
        described = json.loads((tmp_path / "run" / "run.json").read_text())
        assert described["settings"]["epochs"] == 1
        return front

    return check


@pytest.fixture
def names_the_missing_files(tmp_path, capsys):
    """Check that a problem without its files says in one line which command gets them."""

    def check(problem):
        with pytest.raises(SystemExit) as stop:
            main(["train", problem, "--data", str(tmp_path), "--out", str(tmp_path / "run")])
        assert stop.value.code == 2
        error = capsys.readouterr().err
        assert f"lorpman data {problem}" in error
        assert error.count("\n") == 1
        assert not (tmp_path / "run").exists()

    return check
