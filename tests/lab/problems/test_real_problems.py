"""The problems whose data cannot be shipped, end to end on small generated files."""

import json

import pytest
import torch

from lorpman.cli.main import main
from lorpman.front.front import Front
from small_files import write_celeba, write_cifar100, write_cityscapes, write_utkface

SMALL = {
    "utkface": (lambda root: write_utkface(root, 40), ["limit=40", "width=4", "rank=2"]),
    "celeba": (
        lambda root: write_celeba(root, (24, 8, 8)),
        ["limit=40", "width=4", "rank=2", "watch_preferences=2"],
    ),
    "cifar100": (
        lambda root: write_cifar100(root, 6, 2),
        ["width=4", "train_images=16", "validation_images=5", "watch_preferences=2"],
    ),
    "cityscapes": (
        lambda root: write_cityscapes(root, 8, 3, 32, 64),
        ["width=4", "rank=2", "validation_scenes=2", "limit=6"],
    ),
}


@pytest.mark.parametrize("problem", SMALL)
def test_train_and_evaluate(problem, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LORPMAN_CACHE", str(tmp_path / "cache"))
    write, settings = SMALL[problem]
    write(tmp_path / "data")
    run, data = str(tmp_path / "run"), str(tmp_path / "data")
    options = [word for setting in settings for word in ("--set", setting)]
    command = ["train", problem, "--scale", "laptop", "--epochs", "1", "--quiet", *options]
    for arguments in ([*command, "--out", run, "--data", data], ["evaluate", run, "--data", data]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0, capsys.readouterr().err
    front = Front.load(tmp_path / "run" / "front.json")
    assert torch.isfinite(front.scores).all()
    assert len(front) == {2: 11, 3: 66}.get(len(front.tasks), 100)
    described = json.loads((tmp_path / "run" / "run.json").read_text())
    assert described["settings"]["epochs"] == 1


@pytest.mark.parametrize("problem", ["multimnist", "multifashion", "census", *SMALL])
def test_missing_files_are_named_with_the_command_that_gets_them(problem, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["train", problem, "--data", str(tmp_path), "--out", str(tmp_path / "run")])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert f"lorpman data {problem}" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()
