"""The errors that a user can cause, each one a single line: what, expected, found, fix."""

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType


class UsageError(ValueError):
    """Bad input. The command line prints it on one line and exits with code 2."""


class TrainingDiverged(RuntimeError):
    """A loss became NaN or infinite; the message names task, step and preference."""


class TrainingInterrupted(RuntimeError):
    """A signal ended training between two steps, after a checkpoint."""

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.code = 128 + signal
        """The exit code that a shell expects."""


class ProcessLost(RuntimeError):
    """Another process of the same run died; the message says how to go on."""

    code = 75
    """The exit code, as in sysexits.h: a failure that need not happen again, so try once more."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is not in ``known``, with the nearest one suggested.

    >>> str(unknown("method", "lorpmann", ["lorpman", "pamal"]))
    "unknown method 'lorpmann'; did you mean 'lorpman'? known: lorpman, pamal"
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ";"
    return UsageError(f"unknown {kind} '{name}'{hint} known: {', '.join(names)}")


def need(module: str, extra: str) -> ModuleType:
    """``module``, or an error that says which extra brings it.

    >>> need("json", extra="none").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            f"this needs the package {module.partition('.')[0]} ({error}); "
            f"install it with: pip install 'lorpman[{extra}]'"
        ) from None
