"""Exporting the adapters of a run that left its network as it came."""

from pathlib import Path

from torch import Tensor

from lorpman.errors import UsageError
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank


def export_adapters(spec: Spec, model: Manifold, alpha: Tensor | None, to: Path) -> list[Path]:
    """Write PEFT adapters: the network at one preference, or one for every task.

    Args:
        spec: What the run is.
        model: Its manifold with the trained weights.
        alpha: The preference ``[m]``; None for one adapter per task, in folders of their names.
        to: The folder.

    Returns:
        The folders of the adapters.

    Raises:
        UsageError: If the run's method has no low-rank matrices, its network was trained too, or
            the folder is a file.
    """
    if to.exists() and not to.is_dir():
        raise UsageError(f"cannot write '{to}': it is a file; choose a folder")
    low_rank = model.innermost
    if not isinstance(low_rank, LowRank):
        raise UsageError(
            f"adapters need low-rank matrices, found a {type(low_rank).__name__}; train with "
            "--method lorpman --set frozen=true"
        )
    if alpha is not None:
        return [low_rank.save_adapter(to, alpha)]
    return low_rank.save_adapters(to, [task.name for task in spec.tasks()])
