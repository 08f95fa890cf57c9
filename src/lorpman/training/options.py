"""The options of :func:`~lorpman.training.fit.fit` that belong together, each group one object."""

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from torch import Tensor

from lorpman.errors import UsageError, check_kind, whole_number

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Checkpoints:
    """Where training saves itself, how often, and whether it continues from there.

    Every epoch is saved, and SIGINT and SIGTERM save before they end training.

    Args:
        path: The checkpoint file; the one before it is kept beside it. None saves nothing.
        every: Steps between further checkpoints within an epoch; None for none.
        resume: Continue from the newest whole checkpoint at ``path``, if there is one. On the
            CPU the result has the same bits as without the interruption.

    Raises:
        UsageError: If ``every`` is no whole number of at least 1, or if there is no path to resume
            from.
    """

    path: Path | str | None = None
    every: int | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        check_kind("checkpoint", self.path, (str, PathLike, type(None)), "the name of a file")
        check_kind("resume", self.resume, bool, "True or False")
        if self.every is not None:
            whole_number("checkpoint_every", self.every, why=" step")
        if self.resume and self.path is None:
            raise UsageError("resume needs a file to go on from; pass checkpoint='run.safetensors'")


@dataclass(frozen=True)
class Placement:
    """Where training computes: devices, processes and precision.

    Args:
        fabric: A ``lightning_fabric.Fabric``; None for one process on one device.
        own_preferences: Let every process draw preferences of its own, instead of all of them
            the same.
        compiled: Run the networks through ``torch.compile``.
        all_at_once: Run the networks at all preferences of a step forward before any runs
            backward. It takes the memory of all of them, and is for devices that gain by it.
    """

    fabric: "Fabric | None" = None
    own_preferences: bool = False
    compiled: bool = False
    all_at_once: bool = False


@dataclass(frozen=True)
class Validation:
    """The data on which every epoch reports the hypervolume of its front.

    Args:
        loader: Yields batches ``(x, y)``; can be iterated more than once.
        alphas: Preferences ``[n, m]`` to score; None for the manifold's own.
    """

    loader: Iterable[Any]
    alphas: Tensor | None = None


class FlatOptions(TypedDict, total=False):
    """The fields of the groups above as keywords of ``fit``, as they were before the groups."""

    fabric: "Fabric | None"
    own_preferences: bool
    compiled: bool
    validation_alphas: Tensor | None
    checkpoint_every: int | None
    resume: bool


@dataclass(frozen=True)
class OptionGroups:
    """The three groups, however they were written."""

    placement: Placement
    """Where training computes."""
    checkpoints: Checkpoints
    """Where it saves itself."""
    validation: Validation | None
    """What every epoch is scored on; None for nothing."""


def group_options(
    placement: Placement | None,
    checkpoint: Checkpoints | Path | str | None,
    validation: Validation | Iterable[Any] | None,
    **flat: Unpack[FlatOptions],
) -> OptionGroups:
    """The groups of ``fit``'s options, from objects or from flat keywords.

    Args:
        placement: The object, or None where its fields may be keywords.
        checkpoint: The object, or a path where its other fields may be keywords.
        validation: The object, or a loader where its other field may be a keyword.
        **flat: The fields as keywords of ``fit``.

    Raises:
        TypeError: If a keyword is unknown, as Python itself has it.
        UsageError: If a keyword is given beside the object it belongs to.
    """
    unknown = sorted(set(flat) - set(FlatOptions.__annotations__))
    if unknown:
        raise TypeError(f"fit() got an unexpected keyword argument '{unknown[0]}'")
    for group, given, names in (
        ("placement", placement is not None, ("fabric", "own_preferences", "compiled")),
        ("Checkpoints", isinstance(checkpoint, Checkpoints), ("checkpoint_every", "resume")),
        ("Validation", isinstance(validation, Validation), ("validation_alphas",)),
    ):
        twice = [name for name in names if name in flat]
        if given and twice:
            raise UsageError(f"{twice[0]} belongs into {group}, which was given too; put it there")
    check_kind("placement", placement, (Placement, type(None)), "an lp.Placement")
    if placement is None:
        placement = Placement(
            flat.get("fabric"), flat.get("own_preferences", False), flat.get("compiled", False)
        )
    if not isinstance(checkpoint, Checkpoints):
        every, resume = flat.get("checkpoint_every"), flat.get("resume", False)
        checkpoint = Checkpoints(checkpoint, every, resume)
    if validation is not None and not isinstance(validation, Validation):
        validation = Validation(validation, flat.get("validation_alphas"))
    return OptionGroups(placement, checkpoint, validation)
