"""Where a run computes: devices, processes and precision, through Fabric."""

import logging
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lorpman.errors import UsageError, shown, unknown
from lorpman.training.lost_processes import watch_for_deaths

if TYPE_CHECKING:
    from lightning_fabric import Fabric

STRATEGIES = ("auto", "ddp")
_REFUSED = {
    "fsdp": "it cuts weights into pieces, but theta(alpha) is computed from whole ones",
    "deepspeed": "it replaces the optimiser, but freezing must take theta_0 out of it",
}
# By these, a process finds the first machine, and knows which one it is on itself.
_OF_SEVERAL_MACHINES = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")
# What Fabric 2.5 knows torchrun, SLURM and LSF by. Not asked of Fabric, whose import takes seconds.
_LAUNCHERS = (
    {"TORCHELASTIC_RUN_ID"},
    {"SLURM_NTASKS"},
    {"LSB_JOBID", "LSB_DJOB_RANKFILE", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE"},
)
PRECISIONS = ("32-true", "64-true", "bf16-true", "bf16-mixed", "16-mixed")


@dataclass(frozen=True)
class Engine:
    """How many processes train a run, where, and with which numbers.

    Raises:
        UsageError: For a number below 1, or a strategy or precision that is not known.
    """

    devices: int = 1
    """Processes on this machine; under torchrun, whatever it has started."""
    nodes: int = 1
    """Machines; the command is started on each of them."""
    strategy: str = "auto"
    """How processes share the work: "auto" or "ddp"."""
    precision: str = "32-true"
    """Of weights and activations, by Fabric's names."""
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
        """What a resumed run must share with the one before, as plain values."""
        values = asdict(self)
        # What torchrun has started counts, not what was asked for.
        values["devices"], values["nodes"] = self._size()
        # How processes share the work does not change the numbers.
        del values["strategy"]
        return values

    def check_batch(self, batch_size: int | None) -> None:
        """Refuse a global batch that cannot be shared out evenly.

        Args:
            batch_size: Samples in a step, over all processes; None where that is not known.

        Raises:
            UsageError: If the processes cannot share it; the message says which sizes they can.
        """
        devices, nodes = self._size()
        if batch_size is not None and batch_size % (devices * nodes):
            raise UsageError(
                f"batch_size is {batch_size}, which {devices * nodes} processes cannot share "
                f"evenly; set it to a multiple of {devices * nodes}"
            )

    def check_environment(self) -> None:
        """Refuse several machines that nobody has told of each other; they would wait in vain.

        Raises:
            UsageError: If nothing tells where the others are, or a variable holds something else.
        """
        self._size()
        is_first_process()
        if self.nodes == 1 or _has_launcher():
            return
        missing = [name for name in _OF_SEVERAL_MACHINES if name not in os.environ]
        if missing:
            raise UsageError(
                f"nodes is {self.nodes}, but {', '.join(missing)} of the environment do not tell "
                "where the other machines are; start the command with torchrun on each, or set them"
            )
        _read_variable("MASTER_PORT", 65535)
        _read_variable("NODE_RANK", self.nodes - 1)

    def start(self, loggers: list[Any]) -> "Fabric":
        """Start the other processes, if there are any, and join them.

        Args:
            loggers: Fabric's, to which every epoch is told.

        Returns:
            Fabric, as it stands in this process.

        Raises:
            UsageError: If this machine lacks the devices or the precision.
        """
        # Imported here: commands that do not train should not wait for it.
        from lightning_fabric import Fabric

        self.check_environment()
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
            # In this order: the others learn from the environment who the first one is.
            watch_for_deaths(fabric)
            fabric.launch()
        return fabric

    def _size(self) -> tuple[int, int]:
        """Processes per machine, and machines."""
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return self.devices, self.nodes
        local = max(1, _read_variable("LOCAL_WORLD_SIZE"))
        return local, max(1, _read_variable("WORLD_SIZE") // local)


def is_first_process() -> bool:
    """Whether this process is the one that writes; known before any other is started.

    Raises:
        UsageError: If the environment holds a rank that is no number.
    """
    ranks = [name for name in ("RANK", "LOCAL_RANK", "NODE_RANK") if name in os.environ]
    return all(_read_variable(name) == 0 for name in ranks)


def _has_launcher() -> bool:
    """Whether Fabric will find a program that tells the processes of each other."""
    # As in SLURM: under these names a person has a terminal on one of the machines.
    by_hand = os.environ.get("SLURM_JOB_NAME") in ("bash", "interactive")
    return any(
        names <= os.environ.keys() and not (by_hand and "SLURM_NTASKS" in names)
        for names in _LAUNCHERS
    )


def _read_variable(name: str, most: int = 2**31 - 1) -> int:
    """A whole number from the environment."""
    text = os.environ.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most):
        raise UsageError(
            f"the environment variable {name} must be a whole number of at most {most}, "
            f"got {shown(text)}; set or unset it"
        )
    return int(text)
