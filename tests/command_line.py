"""The command line as tests use it: inside this process, or as a process of its own."""

import json
import sys

import pytest

from lorpman.cli.main import main

QUICK = ["--epochs", "1", "--quiet", "--set", "watch_samples=100"]
"""Options of a training that takes a second or two."""


def run(capsys, *arguments):
    """Exit code, standard output and standard error of one command."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


def refused(capsys, *arguments):
    """The one line on standard error with which a command is refused."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("lorpman: ")
    assert err.count("\n") == 1
    return err


def command(*arguments):
    """What starts one command as a process of its own."""
    return [sys.executable, "-m", "lorpman", *(str(argument) for argument in arguments)]


def settings(*assignments):
    """``--set`` before each of them."""
    return [part for assignment in assignments for part in ("--set", assignment)]


def files(folder):
    """Every file below ``folder`` with its content, by relative path."""
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def notes(run):
    """The lines of a run's ``metrics.jsonl``."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
