"""Calling a function in a process of its own, which ends as soon as nobody waits for it."""

import os
import pickle
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle

from lorpman.errors import ProcessLost

# Before anything of lorpman is imported: what this process could import, the other one can.
_START = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from lorpman.lab.own_process import answer; answer()"
)
_SECONDS_TO_SAVE = 30.0
# What cloudpickle sends by value is a setting of the whole process; runs are sent from threads.
_PACKING = threading.Lock()


def call_in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` in a fresh Python, and wait for what it returns.

    Functions and arguments go there by value where no module holds them, so that those of a
    script or a notebook work too. The script itself is not run again.

    Args:
        function: What to call.
        arguments: What to call it with.

    Returns:
        What the function returned.

    Raises:
        ProcessLost: If the process died before it could answer.
        Exception: Whatever the function raised.
    """
    question = pickle.dumps(sys.path) + packed(function, arguments)
    with tempfile.TemporaryDirectory(prefix="lorpman-") as folder:
        file = Path(folder) / "answer"
        command = [sys.executable, "-c", _START, str(file)]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
            _ask_and_wait(child, question)
        if not file.exists():
            raise ProcessLost("its process died, perhaps for lack of memory")
        # From our own child, in a folder that nobody else can write to.
        result, error = pickle.loads(file.read_bytes())
    if error is not None:
        raise error
    return result


def packed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """A call as bytes, for another process that knows neither this script nor problem files.

    Args:
        function: What the other process is to call.
        arguments: Its positional arguments.
    """
    with _PACKING:
        # Problem files are modules that only this process has, perhaps changed on disk since.
        modules = [one for one in list(sys.modules.values()) if _is_problem_file(one)]
        for module in modules:
            cloudpickle.register_pickle_by_value(module)
        try:
            content: bytes = cloudpickle.dumps((function, arguments))
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)
    return content


def _is_problem_file(module: Any) -> bool:
    # Some packages put other things than modules there.
    return "__source__" in getattr(module, "__dict__", {})


def _ask_and_wait(child: subprocess.Popen[bytes], question: bytes) -> None:
    """Send the question, and keep the pipe open until the process ends."""
    assert child.stdin is not None
    try:
        child.stdin.write(question)
        child.stdin.flush()
        child.wait()
    # It died before it had read everything; the missing answer will tell.
    except BrokenPipeError:
        child.wait()
    except KeyboardInterrupt:
        # A terminal tells both processes; a training then saves before it ends.
        child.wait(_SECONDS_TO_SAVE)
        raise


def answer() -> None:
    """Answer the one question on standard input; the other end of the call."""
    function, arguments = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_asker, daemon=True).start()
    file = Path(sys.argv[1])
    try:
        content = cloudpickle.dumps((function(*arguments), None))
    except BaseException as error:
        content = _pickled_error(error)
    # Renamed when it is whole: half an answer is none.
    part = file.with_suffix(".part")
    part.write_bytes(content)
    part.rename(file)


def _pickled_error(error: BaseException) -> bytes:
    """An error as it can be raised again, or what it said where that cannot be."""
    try:
        content = cloudpickle.dumps((None, error))
        pickle.loads(content)
    except Exception:
        content = cloudpickle.dumps(
            (None, RuntimeError("".join(traceback.format_exception(error))))
        )
    return content


def _end_with_asker() -> None:
    """Stop once nobody waits for the answer any more, rather than use up the machine."""
    # By its number: a daemon thread that holds a buffered file aborts the end of the process.
    os.read(0, 1)
    # At once: the last checkpoint is whole, and starting again goes on from it.
    os._exit(1)
