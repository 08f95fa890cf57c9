"""When a checkpoint is due, and what a signal to stop does."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from lorpman.errors import TrainingInterrupted
from lorpman.training import checkpoint
from lorpman.training.divergence import check_checkpoint
from lorpman.training.options import Checkpoints
from lorpman.training.processes import agree
from lorpman.training.state import TrainingState
from lorpman.training.stop_signals import Stop


class Saver:
    """Writes checkpoints when they are due, and when a signal has asked to stop.

    Args:
        checkpoints: Where, and how often.
        stop: What the signal handlers write into.
    """

    def __init__(self, checkpoints: Checkpoints, stop: Stop) -> None:
        self._path = None if checkpoints.path is None else Path(checkpoints.path)
        self._every = checkpoints.every
        self._stop = stop
        if self._path is not None:
            checkpoint.check_writable(self._path)

    def after_step(self, state: TrainingState, loader: Iterable[Any]) -> None:
        """Save if a checkpoint within the epoch is due; then stop as :meth:`after_epoch` does.

        Args:
            state: What is saved.
            loader: The data, whose random states are saved too.

        Raises:
            TrainingInterrupted: If a signal has come; the checkpoint is written before.
        """
        due = self._every is not None and state.steps % self._every == 0
        self._save(state, loader, due)

    def after_epoch(self, state: TrainingState, loader: Iterable[Any]) -> None:
        """Save; then stop if a signal has asked for it.

        Args:
            state: What is saved.
            loader: The data, whose random states are saved too.

        Raises:
            TrainingDiverged: If something is not finite; nothing is saved then.
            TrainingInterrupted: If a signal has come; the checkpoint is written before.
        """
        self._save(state, loader, True)

    def _save(self, state: TrainingState, loader: Iterable[Any], due: bool) -> None:
        if self._path is None:
            return
        # Signals reach processes at different times: all of them must stop at one step.
        signal = int(agree(state.fabric, torch.tensor(self._stop.signal), "max"))
        if not due and not signal:
            return
        # On every process, not only on the first: they exchange their random states here.
        content = state.as_checkpoint(loader)
        check_checkpoint(content)
        if state.fabric.is_global_zero:
            checkpoint.save(content, self._path)
        if signal:
            where = f"after epoch {state.epoch}" + (f", step {state.steps}" if state.steps else "")
            raise TrainingInterrupted(
                f"stopped by signal {signal} {where}; saved in {self._path}, "
                "continue with --resume (resume=True)",
                signal,
            )
