"""Processes that die while others wait for them."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from lorpman.errors import ProcessLost, TrainingInterrupted
from lorpman.training import lost_processes
from lorpman.training.lost_processes import (
    end_other_processes,
    one_line_for_lost_processes,
    watch_for_deaths,
)
from small_training import exactly

LAUNCHER = "lightning_fabric.strategies.launchers.subprocess_script"


def _fabric(world_size=2, rank=0):
    return SimpleNamespace(world_size=world_size, global_rank=rank, is_global_zero=rank == 0)


@pytest.fixture
def deaths(monkeypatch):
    """A fresh watcher, in a process that nobody started."""
    fresh = lost_processes._Deaths()
    monkeypatch.setattr(lost_processes, "_DEATHS", fresh)
    for name in ("TORCHELASTIC_RUN_ID", "LOCAL_RANK", "LORPMAN_FIRST_PROCESS"):
        monkeypatch.setenv(name, "")  # so that what a test sets is undone
        monkeypatch.delenv(name)
    logger = logging.getLogger(LAUNCHER)
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", True)
    level = logger.level
    yield fresh
    logger.setLevel(level)


@pytest.mark.parametrize(
    "message",
    [
        "Connection closed by peer",
        "Connection reset by peer",
        "Gloo failed",
        "NCCL error",
        "Broken pipe",
        "Failed to recv, got 0 bytes",
        "Timed out waiting",
    ],
)
def test_a_message_that_failed_is_one_line(deaths, message):
    said = "process 1 lost touch with another one; this run is ended, continue it with --resume"
    with (
        pytest.raises(ProcessLost, match=exactly(said)),
        one_line_for_lost_processes(_fabric(rank=1)),
    ):
        raise RuntimeError(message)
    assert deaths.leaving


@pytest.mark.parametrize(("message", "world_size"), [("gloo", 1), ("out of memory", 2)])
def test_other_errors_stay_as_they_are(deaths, message, world_size):
    with (
        pytest.raises(RuntimeError, match=exactly(message)) as error,
        one_line_for_lost_processes(_fabric(world_size)),
    ):
        raise RuntimeError(message)
    assert type(error.value) is RuntimeError
    assert deaths.leaving


@pytest.mark.parametrize(("rank", "kind"), [(0, TrainingInterrupted), (1, SystemExit)])
def test_only_the_first_process_tells_of_a_signal(deaths, rank, kind):
    with pytest.raises(kind) as stop, one_line_for_lost_processes(_fabric(rank=rank)):
        raise TrainingInterrupted("stopped by signal 15", 15)
    assert stop.value.code == (143 if rank == 0 else 0)


def test_a_block_that_ends_well_ends_the_watch(deaths):
    with one_line_for_lost_processes(_fabric()):
        assert not deaths.leaving
    assert deaths.leaving


@pytest.mark.parametrize(("world_size", "rank"), [(1, 0), (2, 0), (2, 1)])
def test_all_but_the_first_process_end(monkeypatch, world_size, rank):
    called = []
    monkeypatch.setattr(
        torch.distributed, "destroy_process_group", lambda: called.append("destroyed")
    )
    fabric = _fabric(world_size, rank)
    fabric.barrier = lambda: called.append("waited")
    if rank:
        with pytest.raises(SystemExit) as stop:
            end_other_processes(fabric)
        assert stop.value.code == 0
    else:
        end_other_processes(fabric)
    assert called == ([] if world_size == 1 else ["waited", "destroyed"])


def test_the_first_process_says_who_it_is_and_listens_to_fabric(deaths):
    deaths.leaving = True
    watch_for_deaths(_fabric())
    logger = logging.getLogger(LAUNCHER)
    assert os.environ["LORPMAN_FIRST_PROCESS"] == str(os.getpid())
    assert logger.handlers == [deaths]
    assert logger.level == logging.INFO
    assert not logger.propagate
    assert not deaths.leaving


def test_torchrun_does_it_itself(deaths, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    watch_for_deaths(_fabric())
    assert "LORPMAN_FIRST_PROCESS" not in os.environ
    assert logging.getLogger(LAUNCHER).handlers == []


@pytest.mark.parametrize(
    ("said", "ends"),
    [("[rank: 1] Child process with PID 7 terminated with code 1.", True), ("Started", False)],
)
def test_a_dead_child_takes_the_others_with_it(deaths, monkeypatch, capsys, said, ends):
    ended = []
    child = SimpleNamespace(kill=lambda: ended.append("child"))
    monkeypatch.setattr(lost_processes, "child_processes", lambda fabric: [child])
    monkeypatch.setattr(os, "_exit", ended.append)
    watch_for_deaths(_fabric())
    logging.getLogger(LAUNCHER).info(said)
    assert ended == (["child", ProcessLost.code] if ends else [])
    line = "lorpman: a process of this run has died; this run is ended, continue it with --resume\n"
    assert capsys.readouterr().err == (line if ends else "")


def test_a_death_is_no_news_to_a_process_that_is_leaving(deaths, monkeypatch):
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail("ended"))
    watch_for_deaths(_fabric())
    deaths.leaving = True
    with pytest.raises(SystemExit):
        logging.getLogger(LAUNCHER).info("terminated with code 0")


@pytest.mark.parametrize("leaving", [True, False])
def test_the_others_end_with_the_first(deaths, monkeypatch, leaving):
    """When it is no longer the parent of this process."""
    ended, slept = [], []
    monkeypatch.setattr(os, "_exit", ended.append)

    def sleep(seconds):
        slept.append(seconds)
        monkeypatch.setenv("LORPMAN_FIRST_PROCESS", "0")  # nobody

    monkeypatch.setattr(lost_processes.time, "sleep", sleep)
    monkeypatch.setenv("LORPMAN_FIRST_PROCESS", str(os.getppid()))
    deaths.leaving = leaving
    deaths._end_with_the_first()
    assert slept == [1]
    assert ended == ([] if leaving else [ProcessLost.code])


LOSING = """
import os, sys, time
from lorpman.training.devices import Engine
from lorpman.training.lost_processes import one_line_for_lost_processes as together
fabric = Engine(devices=2).start([])
with together(fabric):
    if fabric.global_rank == 1:
        os._exit(3)
    if sys.argv[1] == "waits":
        time.sleep(200)  # as in a message that never comes
    raise SystemExit(7)
"""


@pytest.mark.slow
def test_a_death_is_noticed_without_a_message(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(LOSING)
    for how, code in (("waits", ProcessLost.code), ("ends", 7)):
        done = subprocess.run([sys.executable, script, how], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("lorpman: ")]
        assert len(lines) == (how == "waits"), done.stderr


@pytest.mark.slow
def test_nobody_waits_for_a_first_process_that_died_before_they_met(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from lorpman.training.devices import Engine\nEngine(devices=2).start([])\n")
    place = {"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2"}
    place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29618"}  # where nobody answers
    first = {"LORPMAN_FIRST_PROCESS": "1"}  # not the parent: that is this test
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, **place, **first},
        capture_output=True,
        text=True,
    )
    assert done.returncode == ProcessLost.code, done.stderr
    assert "lorpman: a process of this run has died" in done.stderr
