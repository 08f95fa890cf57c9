"""A run's ``run.json``: what it must hold, read in one place."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lorpman._files import Kind, json_with, read_json
from lorpman.errors import UsageError

FORMAT = 1
"""Of run.json; to be raised when an older version could misread a run."""
KIND = Kind("a run description", json_with("format", "problem", "method"))
LARGEST_SEED = 2**63 - 1
"""The limit of torch's generators."""

_Count = Annotated[int, Field(ge=0)]


class _OfRuns(BaseModel):
    """Strict: the number 1 is no text. Further keys are kept: later versions may add some."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow", allow_inf_nan=False)


class EngineFacts(_OfRuns):
    """On what a run was trained; what an old file lacks had its default."""

    devices: int = Field(1, ge=1)
    nodes: int = Field(1, ge=1)
    precision: str = "32-true"
    own_preferences: bool = True
    compiled: bool = False


class RunFile(_OfRuns):
    """What ``run.json`` says."""

    format: Literal[1]
    problem: str
    method: str
    seed: int = Field(ge=0, le=LARGEST_SEED)
    settings: dict[str, Any]
    scale: Literal["paper", "laptop"] = "paper"
    recipe: str | None = None
    source: str | None = None
    """The SHA-256 of the file of the problem; empty or missing for one that is built in."""
    parameters: _Count = 0
    """How many numbers the manifold had at the start."""
    versions: dict[str, str] = {}
    engine: EngineFacts | None = None
    """None in files from before there was a choice."""
    threads: _Count = 0


def read_run_file(run: Path) -> RunFile:
    """Read and check the ``run.json`` of a run directory.

    Args:
        run: The run directory.

    Returns:
        What it says.

    Raises:
        UsageError: If there is none, it is no such description, or it is of another version.
    """
    path = run / "run.json"
    found = read_json(path, "run")
    if isinstance(found, dict) and found.get("format", FORMAT) != FORMAT:
        raise UsageError(
            f"{run} was written by another version: expected format {FORMAT}, "
            f"found {str(found['format'])[:40]}"
        )
    try:
        return RunFile.model_validate(found)
    except ValidationError as error:
        raise UsageError(f"run {path} is not a run description: {first_fault(error)}") from None


def first_fault(error: ValidationError) -> str:
    """What pydantic refused first, in one short line: where, why, and what it found.

    Args:
        error: What pydantic raised.
    """
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"][:3])) or "it"
    found = repr(first["input"])
    shown = found if len(found) <= 40 else f"{found[:40]}..."
    return f"{where}: {first['msg']}, found {shown}"
