"""Training one run in a process of its own, whose failure is an answer and not an error."""

import os
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch

from lorpman.errors import TrainingDiverged, UsageError
from lorpman.lab.runs.spec import Scale, Spec
from lorpman.lab.runs.train import train


def try_training(spec: Spec, run: Path, root: Path, isolate: bool, progress: bool) -> str | None:
    """Train one run, or continue it where it was interrupted.

    Args:
        spec: what to train.
        run: its directory.
        root: the data directory.
        isolate: use a process of its own, so that the run's peak memory is its own too; a
            problem that only this process has is trained here.
        progress: show a bar.

    Returns:
        Why it failed, if it did.
    """
    # Plain values only: the functions inside a Spec cannot be sent to another process.
    arguments = (
        spec.described() | {"problem": spec.problem.reference or spec.problem},
        spec.scale,
        spec.recipe,
        run,
        root,
        progress,
        torch.get_num_threads(),
    )
    try:
        if not (isolate and spec.problem.reference):
            _train(*arguments)
        else:
            # Spawned, not forked: a fork would start with the memory of this process.
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                pool.submit(_train, *arguments).result()
    except (UsageError, TrainingDiverged) as error:
        return str(error)
    except BrokenProcessPool:
        return "its process died, perhaps for lack of memory"
    return None


def _train(
    described: dict[str, Any],
    scale: Scale,
    recipe: str | None,
    run: Path,
    root: Path,
    progress: bool,
    threads: int,
) -> None:
    # A spawned process knows nothing of what the first one set.
    torch.set_num_threads(threads)
    if parent_process() is not None:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    problem, method, seed = (described[key] for key in ("problem", "method", "seed"))
    spec = Spec.make(problem, method, seed, described["settings"], scale, recipe)
    train(spec, run, root, resume=True, progress=progress)


def _end_with_parent() -> None:
    """Stop training once nobody waits for it any more, rather than use up the machine."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    # At once: the last checkpoint is whole, and starting again goes on from it.
    os._exit(1)
