"""The errors that a user can cause, each one a single line: what, expected, found, fix."""

import operator
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import SupportsIndex


class UsageError(ValueError):
    """Bad input. The command line prints it on one line and exits with code 2."""


class NotFinite(UsageError):
    """Weights, outputs, losses or scores hold NaN or infinity; the message names where."""


class TrainingDiverged(RuntimeError):
    """A loss or a weight became NaN or infinite; the message names task, step and preference."""


class TrainingInterrupted(RuntimeError):
    """A signal ended training between two steps, after a checkpoint.

    Args:
        message: What to tell the user.
        signal: The number of the signal.
    """

    def __init__(self, message: str, signal: int) -> None:
        super().__init__(message)
        self.code = 128 + signal
        """The exit code that a shell expects."""


class ProcessLost(RuntimeError):
    """Another process of the same run died; the message says how to go on."""

    code = 75
    """The exit code, as in sysexits.h: a failure that need not happen again, so try once more."""


def unknown(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a name that is not known, with the nearest one suggested.

    Args:
        kind: What the name is of, such as "method".
        name: What was given.
        known: What could have been.

    >>> str(unknown("method", "lorpmann", ["lorpman", "pamal"]))
    "unknown method 'lorpmann'; did you mean 'lorpman'? known: lorpman, pamal"
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else ";"
    return UsageError(f"unknown {kind} '{name}'{hint} known: {', '.join(names)}")


def whole_number(name: str, value: object, least: int = 1, why: str = "") -> int:
    """A whole number of any kind, but no truth value, as a plain int.

    Args:
        name: What the number is called.
        value: What was given.
        least: The smallest that is allowed.
        why: What the error says behind that.

    Raises:
        UsageError: If it is anything else.

    >>> whole_number("epochs", 3)
    3
    >>> whole_number("epochs", 2.5)
    Traceback (most recent call last):
    lorpman.errors.UsageError: epochs must be a whole number of at least 1, got 2.5
    """
    whole = None
    if not isinstance(value, bool) and isinstance(value, SupportsIndex):
        with suppress(TypeError):  # a tensor of floats has the method, and refuses
            whole = operator.index(value)
    if whole is None or whole < least:
        raise UsageError(f"{name} must be a whole number of at least {least}{why}, got {value!r}")
    return whole


def need(module: str, extra: str) -> ModuleType:
    """Import a package that is not always installed.

    Args:
        module: Its name.
        extra: The extra of lorpman that brings it.

    Raises:
        UsageError: If it cannot be imported; the message says how to install it.

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
