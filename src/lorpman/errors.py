"""The errors that a user can cause, each one a single line: what, expected, found, fix."""

import math
import operator
from collections.abc import Iterable
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import SupportsFloat, SupportsIndex


class UsageError(ValueError):
    """Bad input. The command line prints it on one line and exits with code 2."""


class NotFinite(UsageError):
    """Weights, outputs, losses or scores hold NaN or infinity; the message names where."""


class UserNotice(UserWarning):
    """Something that a user should know and that stops nothing; the command line prints it."""


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

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        """How another process gets it: with both arguments, where the base class keeps one."""
        return type(self), (str(self), self.code - 128)


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
    names, name = sorted(known), name if isinstance(name, str) else shown(name)
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
        with suppress(Exception):  # tensors have the method, and most of them refuse
            whole = operator.index(value)
    if whole is None or not least <= whole < 2**63:
        given = shown(value)
        raise UsageError(f"{name} must be a whole number of at least {least}{why}, got {given}")
    return whole


def finite_number(name: str, value: object) -> float:
    """A number of any kind that is finite, but no truth value, as a plain float.

    Args:
        name: What the number is called.
        value: What was given.

    Raises:
        UsageError: If it is anything else.

    >>> finite_number("scale", 2)
    2.0
    """
    number = math.nan
    if not isinstance(value, bool | str) and isinstance(value, SupportsFloat):
        with suppress(Exception):  # tensors have the method, and numbers may be too large
            number = float(value)
    if not math.isfinite(number):
        raise UsageError(f"{name} must be a finite number, got {shown(value)}")
    return number


def check_kind(name: str, value: object, kind: type | tuple[type, ...], words: str) -> None:
    """Refuse a value of another kind.

    Args:
        name: What it is called.
        value: What was given.
        kind: What it must be an instance of.
        words: The same for people.

    Raises:
        UsageError: If it is not.

    >>> check_kind("model", 3, str, "a manifold")
    Traceback (most recent call last):
    lorpman.errors.UsageError: model must be a manifold, got 3
    """
    if not isinstance(value, kind):
        raise UsageError(f"{name} must be {words}, got {shown(value)}")


def shown(value: object) -> str:
    """Any value on one short line, for an error.

    Args:
        value: The value.

    >>> shown([1, 2]), len(shown("x" * 1000))
    ('[1, 2]', 80)
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # whatever an object raises that cannot be shown
        text = type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."


def need(module: str, extra: str) -> ModuleType:
    """Import a package that is not always installed.

    Args:
        module: Its name.
        extra: The extra of lorpman that brings it.

    Returns:
        The module.

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
