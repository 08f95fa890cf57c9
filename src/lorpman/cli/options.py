"""Arguments that several commands take, and how the texts in them are read.

An option that one command alone takes stands in that command's own file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lorpman.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from lorpman.lab.problems.problem import Problem

Scale = Annotated[
    Literal["paper", "laptop"],
    typer.Option(help="paper: the published protocol; laptop: a stated reduction."),
]
ProblemName = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM", help="A name (see: lorpman problems), mine.py or package.module:NAME"
    ),
]
MethodName = Annotated[str, typer.Option(help="See: lorpman methods")]
RunDirectory = Annotated[Path, typer.Argument(metavar="RUN", help="A directory made by train.")]
ProblemOfRun = Annotated[
    str | None,
    typer.Option(
        "--problem", metavar="PROBLEM", help="Where RUN's problem is, if not built in: mine.py"
    ),
]
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
Seed = Annotated[
    # The limits are those of torch's generators.
    int, typer.Option(min=0, max=2**63 - 1, help="Repeats a run bit by bit on the CPU.")
]
Jobs = Annotated[int, typer.Option(min=1, help="So many runs at a time on this machine.")]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Of a Dask scheduler, whose workers train the runs."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")]


def read_problem(named: str | None) -> "Problem | None":
    """The problem that ``--problem`` names, if it was given.

    Args:
        named: What was given; None for nothing.

    Raises:
        UsageError: If there is none.
    """
    from lorpman.lab.problems.own_problem import find_problem

    return None if named is None else find_problem(named)


def read_overrides(assignments: Sequence[str] | None, epochs: int | None = None) -> dict[str, Any]:
    """What ``--set`` and ``--epochs`` change about the settings.

    Args:
        assignments: Texts ``key=value``, one for each ``--set``.
        epochs: What ``--epochs`` says; None if it was not given.

    Raises:
        UsageError: If a text is not ``key=value``, or the epochs are given twice.

    >>> read_overrides(["rank=4"], epochs=2)
    {'rank': 4, 'epochs': 2}
    """
    from lorpman.lab.settings import parse_assignments

    overrides: dict[str, Any] = parse_assignments(assignments or [])
    if epochs is not None and overrides.get("epochs", epochs) != epochs:
        found = f"--epochs {epochs} and --set epochs={overrides['epochs']}"
        raise UsageError(f"the number of epochs is given twice, found {found}; leave one out")
    return overrides if epochs is None else overrides | {"epochs": epochs}


def read_scores(option: str, given: Sequence[str]) -> dict[str, float]:
    """Read ``task=number`` texts as a mapping from tasks to numbers.

    Args:
        option: The name of the option, for the error.
        given: What stood after it, every time.

    Raises:
        UsageError: If a text is not ``task=number``, or names a task for the second time.

    >>> read_scores("--at-least", ["left=0.94"])
    {'left': 0.94}
    """
    scores = {}
    for text in given:
        task, equals, value = text.partition("=")
        try:
            scores[task.strip()] = float(value)
        except ValueError:
            equals = ""
        if not equals or not task.strip():
            raise UsageError(
                f"{option} expects task=number, found '{text}'; example: {option} left=0.94"
            )
    # A mapping would silently keep the last of two bounds.
    if len(scores) < len(given):
        raise UsageError(f"{option} expects each task once, found {', '.join(given)}")
    return scores


def read_alpha(text: str, num_tasks: int) -> "Tensor":
    """Read ``"0.3,0.7"`` as a preference ``[m]``.

    Args:
        text: What stood after the option.
        num_tasks: How many weights it must hold.

    Raises:
        UsageError: If the text is not ``num_tasks`` weights with sum 1.
    """
    from lorpman.preference import as_preference

    try:
        return as_preference([float(part) for part in text.split(",")], num_tasks)
    except ValueError as error:
        # Of our own errors the reason is worth telling; "could not convert" is not.
        reason = str(error) if "alpha" in str(error) else f"found '{text}'"
        raise UsageError(f"--alpha expects {num_tasks} weights with sum 1: {reason}") from None


def read_names(text: str, option: str) -> list[str]:
    """Read ``"lorpman,pamal"`` as a list of names.

    Args:
        text: What stood after the option.
        option: The name of the option, for the error.

    Raises:
        UsageError: If a name is empty or stands there twice.

    >>> read_names("lorpman, pamal", "--methods")
    ['lorpman', 'pamal']
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(f"{option} expects different names, comma-separated, found '{text}'")
    return names


def read_seeds(text: str) -> list[int]:
    """Read ``"0,1,2"`` as a list of seeds.

    Args:
        text: Whole numbers with commas between them.

    Raises:
        UsageError: If one is not a whole number, or stands there twice.

    >>> read_seeds("0,1,2")
    [0, 1, 2]
    """
    seeds = read_names(text, "--seeds")
    for seed in seeds:
        # Of 19 digits at most: 2**63 - 1 is the largest seed.
        if not seed.isdecimal() or len(seed) > 19 or int(seed) >= 2**63:
            raise UsageError(
                f"--seeds expects whole numbers, found '{seed[:40]}'; they go from 0 to 2**63 - 1, "
                "for example: --seeds 0,1,2"
            )
    return [int(seed) for seed in seeds]
