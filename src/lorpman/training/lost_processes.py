"""Processes that die while others wait for them: noticed, told in one line, and the run ended.

torchrun does a part of this. Tried with torch 2.13: it prints 45 lines about a dead process where
one is enough, and when it is killed itself its workers go on without it.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from lorpman._torch import child_processes
from lorpman.errors import ProcessLost, TrainingInterrupted

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_FIRST = "LORPMAN_FIRST_PROCESS"
"""The variable with which the first process of a machine tells the others who it is."""
_SIGNS_OF_LOSS = (
    "connection closed",
    "connection reset",
    "gloo",
    "nccl",
    "broken pipe",
    "recv",
    "timed out",
)
"""What the messages of torch.distributed contain when another process is gone."""


def watch_for_deaths(fabric: "Fabric") -> None:
    """End this process when one that it may wait for in vain is dead.

    Call it before ``fabric`` starts the other processes. Under torchrun, which does the same,
    nothing happens.

    Args:
        fabric: What starts the processes.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        _DEATHS.watch(fabric)


@contextmanager
def one_line_for_lost_processes(fabric: "Fabric") -> Iterator[None]:
    """Run a block on all processes, and say in one line when another one was lost in it.

    However the block ends, the first process writes the message and decides the exit code.

    Args:
        fabric: The processes.

    Raises:
        ProcessLost: If a message to or from another process failed.
        SystemExit: If training was interrupted, on every process but the first.
    """
    try:
        yield
    except TrainingInterrupted:
        # All processes stop together; only one of them should say so.
        if not fabric.is_global_zero:
            raise SystemExit(0) from None
        raise
    except RuntimeError as error:
        # torch.distributed has no class of its own for this: only the text tells.
        text = str(error).lower()
        if fabric.world_size == 1 or not any(sign in text for sign in _SIGNS_OF_LOSS):
            raise
        raise ProcessLost(
            _message(f"process {fabric.global_rank} lost touch with another one")
        ) from None
    finally:
        _DEATHS.leaving = True


def end_other_processes(fabric: "Fabric") -> None:
    """Leave the group of processes; all but the first have nothing left to do and exit.

    Args:
        fabric: The processes.

    Raises:
        SystemExit: On every process but the first, with exit code 0.
    """
    if fabric.world_size > 1:
        # Who leaves earlier breaks the connections of those who still compute.
        fabric.barrier()
        torch.distributed.destroy_process_group()
        if not fabric.is_global_zero:
            raise SystemExit(0)


def _message(what: str) -> str:
    return f"{what}; this run is ended, continue it with --resume"


class _Deaths(logging.Handler):
    """Ends this process when another one that it may wait for in vain is dead.

    Fabric lets the first process watch the others: when one is dead, it logs that and kills all,
    itself included. A person would read nothing, and the exit code would be 137 or ours, depending
    on who noticed first. So this handler of Fabric's log acts before Fabric kills. Nobody watches
    the first process; here the others do.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leaving = False
        """This process ends by itself: the others may end before it does."""
        self._fabric: Fabric | None = None

    def watch(self, fabric: "Fabric") -> None:
        """Begin; before any other process is started."""
        self.leaving, self._fabric = False, fabric
        if os.environ.get("LOCAL_RANK", "0") != "0" and _FIRST in os.environ:
            threading.Thread(target=self._end_with_the_first, daemon=True).start()
            return
        os.environ[_FIRST] = str(os.getpid())
        logger = logging.getLogger("lightning_fabric.strategies.launchers.subprocess_script")
        logger.addHandler(self)
        # Fabric tells of the death at this level; nobody else is to print it.
        logger.setLevel(logging.INFO)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        if "terminated with code" not in record.getMessage():
            return
        if self.leaving:
            raise SystemExit  # of the thread that Fabric watches in, which goes on to kill
        assert self._fabric is not None
        for process in child_processes(self._fabric):
            process.kill()
        self._end()

    def _end_with_the_first(self) -> None:
        # A process whose parent is dead gets another one.
        while os.getppid() == int(os.environ[_FIRST]):
            time.sleep(1)
        if not self.leaving:
            self._end()

    def _end(self) -> None:
        sys.stderr.write(f"lorpman: {_message('a process of this run has died')}\n")
        sys.stderr.flush()
        # Not sys.exit, which ends only this thread: the main one hangs in torch.distributed.
        os._exit(ProcessLost.code)


_DEATHS = _Deaths()
