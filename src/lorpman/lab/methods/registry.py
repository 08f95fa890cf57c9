"""All methods by name. Their rows are in ``continuous.py``, ``discrete.py`` and ``single.py``."""

from contextlib import suppress

from lorpman.errors import UsageError, unknown
from lorpman.lab.added_by_packages import added_names, load_added
from lorpman.lab.methods.continuous import CONTINUOUS
from lorpman.lab.methods.discrete import DISCRETE
from lorpman.lab.methods.method import Method
from lorpman.lab.methods.single import SINGLE

METHODS = {method.name: method for method in (*CONTINUOUS, *DISCRETE, *SINGLE)}
"""Every method of this folder, in the order in which ``lorpman methods`` lists them."""


def method_names() -> list[str]:
    """Those of this folder, then those that other packages add."""
    return [*METHODS, *(n for n in added_names("lorpman.methods") if n not in METHODS)]


def settings_of_all_methods() -> set[str]:
    """The names of the settings that methods have; a package that is broken adds none."""
    names: set[str] = set()
    for name in method_names():
        with suppress(UsageError):
            names |= set(get_method(name).settings.model_fields)
    return names


def get_method(name: str) -> Method:
    """Look a method up.

    Args:
        name: One of :func:`method_names`.

    Returns:
        The row of that name.

    Raises:
        UsageError: If there is no such method (the message suggests the nearest name), or the
            package that adds it cannot be imported.

    >>> get_method("lorpman").kind
    'continuous'
    """
    if not isinstance(name, str):
        raise unknown("method", name, method_names())
    if name in METHODS:
        return METHODS[name]
    if name in added_names("lorpman.methods"):
        return load_added("lorpman.methods", name, Method)
    raise unknown("method", name, method_names())
