"""Where a run computes: devices, processes and precision, through Fabric."""

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from lorpman.errors import ProcessLost, TrainingInterrupted, UsageError, unknown

if TYPE_CHECKING:
    from lightning_fabric import Fabric

STRATEGIES = ("auto", "ddp")
_REFUSED = {
    "fsdp": "it cuts weights into pieces, but theta(alpha) is computed from whole ones",
    "deepspeed": "it replaces the optimiser, but freezing must take theta_0 out of it",
}
_FIRST = "LORPMAN_FIRST_PROCESS"
"""The variable with which the first process of a machine tells the others who it is."""
PRECISIONS = ("32-true", "64-true", "bf16-true", "bf16-mixed", "16-mixed")
_LOST = (
    "connection closed",
    "connection reset",
    "gloo",
    "nccl",
    "broken pipe",
    "recv",
    "timed out",
)


@dataclass(frozen=True)
class Engine:
    """How many processes train a run, where, and with which numbers."""

    devices: int = 1
    """Processes on this machine; under torchrun, whatever it has started."""
    nodes: int = 1
    strategy: str = "auto"
    precision: str = "32-true"
    own_preferences: bool = True
    """Every process draws preferences of its own, rather than all of them the same."""
    compiled: bool = False
    """Networks go through torch.compile."""

    def __post_init__(self) -> None:
        for name, value in (("devices", self.devices), ("nodes", self.nodes)):
            if value < 1:
                raise UsageError(f"{name} must be at least 1, got {value}")
        if self.strategy.partition("_")[0] in _REFUSED:
            reason = _REFUSED[self.strategy.partition("_")[0]]
            raise UsageError(f"strategy {self.strategy} cannot be used: {reason}; use ddp")
        if self.strategy not in STRATEGIES:
            raise unknown("strategy", self.strategy, STRATEGIES)
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)

    def described(self) -> dict[str, Any]:
        """What a resumed run must share with the one before."""
        values = asdict(self)
        values["devices"], values["nodes"] = self._size()
        del values["strategy"]
        return values

    def check_batch(self, batch_size: int) -> None:
        """Refuse a global batch that cannot be shared out evenly."""
        devices, nodes = self._size()
        if batch_size % (devices * nodes):
            raise UsageError(
                f"batch_size is {batch_size}, which {devices * nodes} processes cannot share "
                f"evenly; set it to a multiple of {devices * nodes}"
            )

    def start(self, loggers: list[Any]) -> "Fabric":
        """Start the other processes, if there are any, and join them."""
        from lightning_fabric import Fabric

        devices, nodes = self._size()
        strategy = "ddp" if devices * nodes > 1 else self.strategy
        try:
            fabric = Fabric(
                devices=devices,
                num_nodes=nodes,
                strategy=strategy,
                precision=self.precision,  # type: ignore[arg-type]
                loggers=loggers,
            )
        except (ValueError, RuntimeError) as error:
            raise UsageError(
                f"this machine cannot run so: {' '.join(str(error).split())}"
            ) from None
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
        if devices * nodes > 1:
            _DEATHS.watch(fabric.strategy.launcher)
            fabric.launch()
        return fabric

    def _size(self) -> tuple[int, int]:
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return self.devices, self.nodes
        local = int(os.environ["LOCAL_WORLD_SIZE"])
        return local, int(os.environ["WORLD_SIZE"]) // local


def is_first_process() -> bool:
    """Whether this process is the one that writes; known before any other is started."""
    return all(int(os.environ.get(name, "0")) == 0 for name in ("RANK", "LOCAL_RANK", "NODE_RANK"))


@contextmanager
def together(fabric: "Fabric") -> Iterator[None]:
    """Run a block on all processes, and say in one line when another one was lost in it.

    However the block ends, it is the first process that tells, and that decides the exit code.
    """
    try:
        yield
    except TrainingInterrupted:
        if not fabric.is_global_zero:
            raise SystemExit(0) from None
        raise
    except RuntimeError as error:
        text = str(error).lower()
        if fabric.world_size == 1 or not any(sign in text for sign in _LOST):
            raise
        raise ProcessLost(
            _lost(f"process {fabric.global_rank} lost touch with another one")
        ) from None
    finally:
        _DEATHS.leaving = True


def leave(fabric: "Fabric") -> None:
    """Part from the other processes; all but the first have nothing left to do."""
    if fabric.world_size > 1:
        fabric.barrier()
        torch.distributed.destroy_process_group()
        if not fabric.is_global_zero:
            raise SystemExit(0)


def _lost(what: str) -> str:
    return f"{what}; this run is ended, continue it with --resume"


class _Deaths(logging.Handler):
    """Ends this process when another one that it may wait for in vain is dead.

    Among the processes that Fabric starts, the first one looks after the others: where it finds
    one dead, it logs that, and kills all, itself included. It would say nothing, and the exit
    code (137, or ours) would depend on who noticed first; so this handler acts before it does.
    Nobody looks after the first one: the others do so here.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leaving = False
        """This process ends by itself: the others may end before it does."""
        self._launcher: Any = None

    def watch(self, launcher: Any) -> None:
        """Begin; before any other process is started. Under torchrun, which does it, nothing."""
        if "TORCHELASTIC_RUN_ID" in os.environ:
            return
        self.leaving, self._launcher = False, launcher
        if os.environ.get("LOCAL_RANK", "0") != "0" and _FIRST in os.environ:
            threading.Thread(target=self._end_with_the_first, daemon=True).start()
            return
        os.environ[_FIRST] = str(os.getpid())
        logger = logging.getLogger("lightning_fabric.strategies.launchers.subprocess_script")
        logger.addHandler(self)
        logger.setLevel(logging.INFO)
        logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        if "terminated with code" not in record.getMessage():
            return
        if self.leaving:
            raise SystemExit  # of the thread that Fabric watches in, which goes on to kill
        for process in self._launcher.procs:
            process.kill()
        self._end()

    def _end_with_the_first(self) -> None:
        while os.getppid() == int(os.environ[_FIRST]):
            time.sleep(1)
        if not self.leaving:
            self._end()

    def _end(self) -> None:
        sys.stderr.write(f"lorpman: {_lost('a process of this run has died')}\n")
        sys.stderr.flush()
        os._exit(ProcessLost.code)


_DEATHS = _Deaths()
