"""Measurements that need a process of their own: memory, imports, whole commands."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# The result goes to the last line of the real standard output: what is measured may print as well.
_CALL = """
import json, sys
from importlib import import_module
module, function, arguments = json.loads(sys.argv[1])
result = getattr(import_module(module), function)(**arguments)
print(json.dumps(result), file=sys.__stdout__)
"""


@dataclass(frozen=True)
class Finished:
    """What a process said at its end, and what it took."""

    output: str
    """All that it printed on standard output."""
    seconds: float
    """On the clock, from start to exit."""
    cpu_seconds: float
    """Of the processor."""


def run_python(code: str, arguments: Sequence[str], threads: int) -> Finished:
    """Run code in a fresh interpreter and wait for its end.

    Args:
        code: The program.
        arguments: Its ``sys.argv[1:]``.
        threads: How many it may use.

    Returns:
        What it printed, and what it took.

    Raises:
        RuntimeError: If it failed, with the last line that it said.
    """
    before, began = _cpu_of_children(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)},
        check=False,
    )
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [_ending(done.returncode)]
        raise RuntimeError(f"a process of the benchmark failed: {said[-1]}")
    return Finished(done.stdout, seconds, _cpu_of_children() - before)


def call_in_fresh_process(
    function: str, arguments: dict[str, Any], threads: int
) -> tuple[dict[str, Any], Finished]:
    """Call a function in a fresh interpreter.

    Args:
        function: Its full name, ``package.module.function``.
        arguments: Its keyword arguments, which JSON can hold.
        threads: How many it may use.

    Returns:
        What it returned, by way of JSON, and what the process took.

    Raises:
        RuntimeError: If it failed, with the last line that it said.
    """
    module, _, name = function.rpartition(".")
    done = run_python(_CALL, [json.dumps([module, name, arguments])], threads)
    return json.loads(done.output.strip().splitlines()[-1]), done


def _ending(code: int) -> str:
    """What an exit code means.

    >>> _ending(-4), _ending(1)
    ('ended by SIGILL', 'exit code 1')
    """
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
