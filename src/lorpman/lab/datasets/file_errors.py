"""What to say about files of a dataset that are missing or damaged."""

from pathlib import Path

from lorpman.errors import UsageError


def missing_file(path: Path, problem: str, root: Path) -> UsageError:
    """The error for a file that is not where it should be.

    Args:
        path: Where it should be.
        problem: Whose file it is; the message names the command that gets it.
        root: The data directory.

    Returns:
        The error, to be raised.
    """
    return UsageError(f"{path} not found; run: lorpman data {problem} --data {root}")


def damaged_file(path: Path, what: str) -> UsageError:
    """The error for a file that is there but is not what it should be.

    Args:
        path: The file.
        what: The rest of a sentence that begins with its name, such as ``holds no rows``.

    Returns:
        The error, to be raised.
    """
    return UsageError(f"{path} {what}; delete it and get it again")
