"""A pass over the data that can be left in the middle and taken up again, batch for batch."""

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from lorpman.errors import UsageError

_NO_MORE = object()


class ResumableBatches:
    """One epoch's batches, and further ones for a rule that asks for them.

    What a loader draws (its order, its augmentations) depends on random states at the start of
    the pass and on how often it was asked since. Both are kept, so that a pass can be replayed.

    Args:
        loader: The data; iterated once for the epoch, and once more for every pass over further
            batches.
        to_device: Moves a batch to where training computes.
    """

    def __init__(self, loader: Iterable[Any], to_device: Callable[[Any], Any]) -> None:
        self._loader = loader
        self._to_device = to_device
        self._start = capture(loader)
        self._epoch_pass: Iterator[Any] | None = None
        self._further_pass: Iterator[Any] = iter(())
        self._asked: list[int] = []
        """Further batches that each step has asked for."""

    def __iter__(self) -> Iterator[Any]:
        """The batches of the epoch that are still to come."""
        if self._epoch_pass is None:
            # Not earlier: a loader draws its order when a pass begins, and a replay sets the
            # random states before that.
            self._epoch_pass = iter(self._loader)
        for batch in self._epoch_pass:
            # Before the step: one that asks for further batches counts them here.
            self._asked.append(0)
            yield self._to_device(batch)

    def another(self) -> Any:
        """One more batch for the present step, from a pass of its own that starts over."""
        self._asked[-1] += 1
        batch = next(self._further_pass, None)
        if batch is None:
            self._further_pass = iter(self._loader)
            batch = next(self._further_pass)
        return self._to_device(batch)

    def state(self) -> dict[str, Any]:
        """The random states at its start, and how many further batches each step asked for."""
        return {"start": self._start, "asked": torch.tensor(self._asked, dtype=torch.int64)}

    def replay(self, state: dict[str, Any]) -> None:
        """Go to where :meth:`state` was taken; the batches on the way are drawn and dropped.

        Args:
            state: What :meth:`state` gave, in this or an earlier process.

        Raises:
            UsageError: If the loader has fewer batches than were taken.
        """
        self._start = state["start"]
        restore(self._start, self._loader)
        steps, taken = iter(self), state["asked"].tolist()
        for asked in taken:
            # Not None, which a loader might give.
            if next(steps, _NO_MORE) is _NO_MORE:
                raise UsageError(
                    f"the checkpoint was made after {len(taken)} steps of an epoch, but the loader "
                    "has fewer batches; resume with the data it was begun with"
                )
            for _ in range(asked):
                self.another()


def capture(loader: Iterable[Any]) -> dict[str, Any]:
    """Every random state that training on ``loader`` can depend on, as a checkpoint holds it.

    Args:
        loader: Its own generator and those of its dataset's transforms are among them.
    """
    return {
        "torch": torch.get_rng_state(),
        "devices": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "python": random.getstate(),
        "numpy": _numpy_state(),
        "loader": [generator.get_state() for generator in _generators(loader)],
    }


def restore(state: dict[str, Any], loader: Iterable[Any]) -> None:
    """Undo everything that was drawn since :func:`capture`.

    Args:
        state: What :func:`capture` gave.
        loader: One like that of :func:`capture`, with as many generators.

    Raises:
        UsageError: If the states are not of these generators.
    """
    own, kept = _generators(loader), state["loader"]
    if len(own) != len(kept):
        raise UsageError(
            f"the loader has {len(own)} random generators, that of the checkpoint had {len(kept)}; "
            "resume with a loader like the one it was begun with"
        )
    try:
        torch.set_rng_state(state["torch"])
        if state["devices"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["devices"])
        random.setstate(state["python"])
        np.random.set_state(state["numpy"])  # noqa: NPY002
        for generator, value in zip(own, kept, strict=True):
            generator.set_state(value)
    except (RuntimeError, TypeError, ValueError, OverflowError, LookupError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"the random states of the checkpoint are damaged: {reason}") from None


def _numpy_state() -> tuple[Any, ...]:
    """Of the global generator, from which transforms of users may draw, in plain values."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return (name, np.asarray(keys).tolist(), *rest)


def generators(dataset: object) -> list[torch.Generator]:
    """The generators that the dataset's transforms draw from, for a checkpoint to keep.

    Args:
        dataset: Its attribute ``transform``, if there is randomness in it, has an attribute
            ``generator``.
    """
    generator = getattr(getattr(dataset, "transform", None), "generator", None)
    return [generator] if isinstance(generator, torch.Generator) else []


def _generators(loader: Iterable[Any]) -> list[torch.Generator]:
    """What decides the order of the data, and how it is augmented."""
    order = getattr(loader, "generator", None)
    transforms = generators(getattr(loader, "dataset", None))
    return transforms if order is None else [order, *transforms]
