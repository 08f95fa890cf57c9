import os
import signal
import subprocess
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

from lorpman.errors import ProcessLost, TrainingInterrupted, UsageError
from lorpman.lab.own_process import call_in_own_process, packed


def test_a_function_that_no_module_holds_is_called_elsewhere():
    offset = 40
    pid, total = call_in_own_process(lambda x: (os.getpid(), x + offset), 2)
    assert total == 42
    assert pid != os.getpid()


@pytest.mark.parametrize(
    "error", [UsageError("rank must be 1"), TrainingInterrupted("saved", signal.SIGTERM)]
)
def test_what_it_raises_is_raised_here(error):
    def fail():
        raise error

    with pytest.raises(type(error), match=str(error)) as caught:
        call_in_own_process(fail)
    assert vars(caught.value) == vars(error)


def test_an_error_that_cannot_be_sent_says_what_it_said():
    class Locked(Exception):
        def __init__(self):
            super().__init__("cannot be sent")
            self.lock = threading.Lock()

    def fail():
        raise Locked

    with pytest.raises(RuntimeError, match="cannot be sent"):
        call_in_own_process(fail)


def test_a_process_that_dies_is_told_apart():
    with pytest.raises(ProcessLost, match="died"):
        call_in_own_process(os._exit, 3)


def test_it_ends_when_nobody_waits_for_it(tmp_path):
    script = f"""
import os, time
from pathlib import Path
from lorpman.lab.own_process import call_in_own_process

def wait():
    Path({str(tmp_path / "pid")!r}).write_text(str(os.getpid()))
    os.kill(os.getppid(), 9)
    time.sleep(600)

call_in_own_process(wait)
"""
    # Both processes hold the pipe: it ends when both have ended.
    ended = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, timeout=120)
    assert ended.returncode == -9
    assert int((tmp_path / "pid").read_text()) > 0


def test_a_problem_of_a_file_goes_along_as_it_was_read(tmp_path):
    """Whatever became of the file since: the run must be of what was checked here."""
    from lorpman.lab.problems.own_problem import find_problem

    file = tmp_path / "mine_of_this_test.py"
    file.write_text(
        """
import torch
import lorpman as lp

SIZE = 3
loss = torch.nn.functional.mse_loss
PROBLEM = lp.Problem(
    "mine",
    [lp.Task(n, loss, loss, maximise=False, reference=9.0) for n in "ab"],
    lambda: torch.nn.Linear(SIZE, 2),
    lambda: None,
)
"""
    )
    problem = find_problem(str(file))
    file.unlink()
    assert call_in_own_process(lambda given: given.network().in_features, problem) == 3


def test_runs_are_packed_from_threads_while_a_problem_file_is_open(monkeypatch):
    problem_file = types.ModuleType("mine")
    problem_file.__source__ = "PROBLEM = None"
    monkeypatch.setitem(sys.modules, "mine", problem_file)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            calls = [threads.submit(packed, print, ()) for _ in range(200)]
            assert len({call.result() for call in calls}) == 1
    finally:
        sys.setswitchinterval(interval)
