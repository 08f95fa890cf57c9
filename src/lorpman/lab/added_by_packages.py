"""Entry points: problems and methods that other installed packages add.

A package says in its ``pyproject.toml``, for instance::

    [project.entry-points."lorpman.problems"]
    ratings = "my_package.problems:RATINGS"

    [project.entry-points."lorpman.methods"]
    my-method = "my_package.methods:METHOD"
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Literal, TypeVar

from lorpman.errors import UsageError

Group = Literal["lorpman.problems", "lorpman.methods"]
_Row = TypeVar("_Row")


def added_names(group: Group) -> list[str]:
    """The names that installed packages add to a group, sorted; nothing of them is imported.

    Args:
        group: The group of entry points.
    """
    return sorted({entry.name for entry in entry_points(group=group)})


def load_added(group: Group, name: str, kind: type[_Row]) -> _Row:
    """Import what a package has added.

    Args:
        group: To which group.
        name: One of :func:`added_names`.
        kind: What it must be.

    Returns:
        The problem or the method.

    Raises:
        UsageError: If it cannot be imported, is something else, or calls itself by another name.
    """
    entry = next(iter(entry_points(group=group, name=name)))
    try:
        found = entry.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"{_where(entry)} cannot be imported: {reason}") from error
    if not isinstance(found, kind):
        expected, got = kind.__name__, type(found).__name__
        raise UsageError(f"{_where(entry)} must be an lp.{expected}, found {got}")
    if (own := getattr(found, "name", name)) != name:
        raise UsageError(f"{_where(entry)} calls itself '{own}'; give both the same name")
    return found


def _where(entry: EntryPoint) -> str:
    package = entry.dist.name if entry.dist is not None else "a package"
    return f"'{entry.name}' of {package} ({entry.value})"
