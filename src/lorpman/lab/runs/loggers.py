"""Loggers that a person may want beside a run's own log: CSV files and TensorBoard."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lorpman.errors import need, unknown

LOGGERS = ("csv", "tensorboard")


def make_loggers(names: Sequence[str], out: Path) -> list[Any]:
    """Fabric's loggers by name, each in a folder of its own below ``out``.

    Nothing is written until they are told of an epoch.

    Args:
        names: Any of :data:`LOGGERS`.
        out: The run directory.

    Raises:
        UsageError: If a name is not known, or the package behind it is not installed.
    """
    made: list[Any] = []
    for name in names:
        if name not in LOGGERS:
            raise unknown("logger", name, LOGGERS)
        if name == "tensorboard":
            need("tensorboard", extra="watch")
        from lightning_fabric.loggers.csv_logs import CSVLogger
        from lightning_fabric.loggers.tensorboard import TensorBoardLogger

        kind: Any = CSVLogger if name == "csv" else TensorBoardLogger
        # Without a version, a resumed run would begin a second folder beside the first.
        made.append(kind(out, name=name, version=""))
    return made
