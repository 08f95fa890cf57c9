"""Arguments that several commands take, and how their values are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lorpman.errors import UsageError

Scale = Annotated[
    Literal["paper", "laptop"],
    typer.Option(help="paper: the published protocol; laptop: a stated reduction."),
]
ProblemName = Annotated[str, typer.Argument(metavar="PROBLEM", help="See: lorpman problems")]
RunDirectory = Annotated[Path, typer.Argument(metavar="RUN", help="A directory made by train.")]
DataDirectory = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where datasets are [LORPMAN_DATA, or a cache]."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting; repeatable."),
]
Recipe = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Settings over the preset's: best, found on MultiMNIST."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")]


def read_scores(option: str, given: Sequence[str]) -> dict[str, float]:
    """``["left=0.94"]`` as a mapping from tasks to numbers.

    >>> read_scores("--at-least", ["left=0.94"])
    {'left': 0.94}
    """
    read = {}
    for text in given:
        task, equals, value = text.partition("=")
        try:
            read[task.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not task.strip():
            raise UsageError(
                f"{option} expects task=number, found '{text}'; example: {option} left=0.94"
            )
    if len(read) < len(given):
        raise UsageError(f"{option} expects each task once, found {', '.join(given)}")
    return read


def read_alpha(text: str, num_tasks: int) -> Any:
    """``"0.3,0.7"`` as a preference ``[m]``."""
    from lorpman.preference import as_preference

    try:
        return as_preference([float(part) for part in text.split(",")], num_tasks)
    except ValueError as error:
        reason = str(error) if "alpha" in str(error) else f"found '{text}'"
        raise UsageError(f"--alpha expects {num_tasks} weights with sum 1: {reason}") from None


def read_parts(text: str, option: str) -> list[str]:
    """``"lorpman,pamal"`` as a list of names that differ."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts) or len(set(parts)) != len(parts):
        raise UsageError(f"{option} expects different names, comma-separated, found '{text}'")
    return parts


def read_seeds(text: str) -> list[int]:
    """``"0,1,2"`` as a list of seeds.

    >>> read_seeds("0,1,2")
    [0, 1, 2]
    """
    for seed in (parts := read_parts(text, "--seeds")):
        if not seed.isdecimal():
            raise UsageError(
                f"--seeds expects whole numbers, found '{seed}'; example: --seeds 0,1,2"
            )
    return [int(seed) for seed in parts]
