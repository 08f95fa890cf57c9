"""Packages that only some commands need: imported when used, named when missing."""

from importlib import import_module
from types import ModuleType

from lorpman.errors import UsageError


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
