"""The commands that there are, and what becomes of their errors."""

import json
import shutil
import subprocess
import sys

import pytest

from command_line import QUICK, files, refused, run
from lorpman import __version__
from lorpman.cli import main as command_line_main
from lorpman.cli.main import COMMANDS
from lorpman.errors import TrainingDiverged, TrainingInterrupted
from lorpman.training.checkpoint import CheckpointWarning


@pytest.mark.parametrize("arguments", [[], ["--help"], *([c.__name__, "--help"] for c in COMMANDS)])
def test_help(capsys, arguments):
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "Usage: " in out


def test_the_version_is_that_of_the_library(capsys):
    assert run(capsys, "--version") == (0, f"{__version__}\n", "")


def test_every_command_stands_in_the_file_of_its_name():
    assert [c.__module__ for c in COMMANDS] == [f"lorpman.cli.{c.__name__}" for c in COMMANDS]


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
        settings = [*QUICK, "--set", "rank=7"]
        arguments = ["train", "multidigits", "--out", out, *options, *settings]
    assert message in refused(capsys, *arguments)
    assert files(out) == before
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (TrainingDiverged("loss of left\nis NaN"), 2, "loss of left is NaN"),
        (TrainingInterrupted("stopped", signal=15), 143, "stopped"),
    ],
)
def test_errors_become_one_line_and_an_exit_code(capsys, monkeypatch, error, code, said):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(command_line_main, "app", fail)
    assert run(capsys, "train", "toy") == (code, "", f"lorpman: {said}\n")


@pytest.mark.parametrize("debug", [False, True])
def test_an_error_that_nobody_expected_is_one_line_unless_more_is_asked_for(
    capsys, monkeypatch, debug
):
    def fail(given, **options):
        assert given == ["problems"]
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr(command_line_main, "app", fail)
    code, out, err = run(capsys, "problems", *(["--debug"] if debug else []))
    assert (code, out) == (1, "")
    *trace, line = err.splitlines()
    assert line.startswith("lorpman: unexpected error, which should be reported: ZeroDivisionError")
    assert ("--debug" in line) != debug
    assert bool(trace) == debug


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't allocate memory: 4 GB")])
def test_too_little_memory_is_bad_input(capsys, monkeypatch, error):
    def fail(given, **options):
        raise error

    monkeypatch.setattr(command_line_main, "app", fail)
    assert "not enough memory" in refused(capsys, "problems")


def test_a_reader_that_has_gone_is_no_news(tmp_path):
    reader = f"{sys.executable} -m lorpman methods | true"
    done = subprocess.run(["bash", "-c", reader], capture_output=True, text=True)
    assert done.stderr == ""


def test_only_our_own_warnings_are_shown(capsys):
    command_line_main._show_warning(CheckpointWarning("an older one was used"), UserWarning, "f", 1)
    command_line_main._show_warning(UserWarning("deprecated"), UserWarning, "file", 1)
    assert capsys.readouterr().err == "lorpman: an older one was used\n"


def test_the_library_stays_light():
    heavy = ("lightning_fabric", "matplotlib", "sklearn", "pydantic", "rich", "typer", "scipy")
    code = f"import sys, lorpman; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"


def test_the_commands_stay_light():
    heavy = ("lightning_fabric", "matplotlib", "sklearn", "pydantic", "dash", "plotly", "flask")
    code = f"import sys, lorpman.cli.main; print([name for name in {heavy} if name in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"
