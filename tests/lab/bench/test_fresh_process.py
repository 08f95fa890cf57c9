"""Functions run in fresh interpreters, and failures say why."""

import pytest

from lorpman.lab.bench.fresh_process import call_in_fresh_process, run_python


def test_a_function_is_called_elsewhere_and_its_result_comes_back():
    result, finished = call_in_fresh_process("json.dumps", {"obj": [1, 2]}, threads=1)
    assert result == "[1, 2]"
    assert finished.seconds > 0
    assert finished.cpu_seconds > 0


def test_the_process_has_the_threads_that_it_is_given():
    code = "import os; print(os.environ['OMP_NUM_THREADS'])"
    assert run_python(code, [], threads=3).output == "3\n"


def test_a_failure_says_its_last_line_or_its_signal():
    with pytest.raises(RuntimeError, match="ValueError: no such thing"):
        run_python("raise ValueError('no such thing')", [], 1)
    with pytest.raises(RuntimeError, match="ended by SIGKILL"):
        run_python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", [], 1)
