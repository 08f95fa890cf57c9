"""Problem files to start from: commented, and trained as they stand."""

import os
import re
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

from lorpman._files import Kind, write_bytes
from lorpman.errors import UsageError, unknown

SampleKind = Literal["tabular", "image", "text"]
# Nothing that is there is replaced: a person may have written it.
_PROBLEM_FILE = Kind("a problem file", lambda path: False, (".py",))


def write_starting_file(path: Path, kind: SampleKind = "tabular") -> None:
    """Write a problem file to start from.

    Args:
        path: The file; its name becomes that of the problem.
        kind: What the samples are.

    Raises:
        UsageError: If the file is there already, is no file of Python, or cannot be written.
    """
    if kind not in get_args(SampleKind):
        raise unknown("kind", kind, get_args(SampleKind))
    if path.suffix != ".py":
        raise UsageError(
            f"a problem file must end in .py, got {path}; try {path.with_suffix('.py')}"
        )
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already; choose another name")
    name = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem).lstrip("._-") or "mine"
    folder = resources.files("lorpman.lab.problems").joinpath("starting_files")
    text = folder.joinpath(f"{kind}.py.txt").read_text()
    # Not str.format: the files hold braces of their own.
    text = text.replace("{file}", path.name).replace("{name}", name)
    write_bytes(path, text.encode(), _PROBLEM_FILE)
