"""Training one run in a process of its own, whose failure is an answer and not an error."""

from pathlib import Path

import torch

from lorpman.errors import ProcessLost, TrainingDiverged, UsageError
from lorpman.lab.own_process import call_in_own_process
from lorpman.lab.runs.spec import Spec
from lorpman.lab.runs.train import train

# A process that died may have lacked memory for a moment; the second goes on from its checkpoint.
_ATTEMPTS = 2


def try_training(
    spec: Spec,
    run: Path,
    root: Path,
    isolate: bool,
    progress: bool,
    threads: int | None = None,
) -> str | None:
    """Train one run, or continue it where it was interrupted.

    A process that dies loses only its run, which is continued once from its last checkpoint.

    Args:
        spec: What to train.
        run: Its directory.
        root: The data directory.
        isolate: Use a process of its own, so that the run's peak memory is its own too.
        progress: Show a bar.
        threads: Of torch in a process of its own; None for as many as here.

    Returns:
        Why it failed, if it did.
    """
    arguments = (spec, run, root, progress, threads or torch.get_num_threads())
    try:
        if isolate:
            _train_apart(*arguments)
        else:
            _train(*arguments)
    except (UsageError, TrainingDiverged, ProcessLost) as error:
        return str(error)
    return None


def _train_apart(spec: Spec, run: Path, root: Path, progress: bool, threads: int) -> None:
    for attempt in range(_ATTEMPTS):
        try:
            call_in_own_process(_train, spec, run, root, progress, threads)
        except ProcessLost:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _train(spec: Spec, run: Path, root: Path, progress: bool, threads: int) -> None:
    # A fresh process knows nothing of what the first one set.
    torch.set_num_threads(threads)
    train(spec, run, root, resume=True, progress=progress)
