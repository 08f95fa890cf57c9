"""All methods by name. Their rows are in ``continuous.py``, ``discrete.py`` and ``single.py``."""

from lorpman.errors import unknown
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


def get_method(name: str) -> Method:
    """Look a method up.

    Args:
        name: one of :func:`method_names`.

    Returns:
        The row of that name.

    Raises:
        UsageError: there is no such method (the message suggests the nearest name), or the
            package that adds it cannot be imported.

    >>> get_method("lorpman").kind
    'continuous'
    """
    if name in METHODS:
        return METHODS[name]
    if name in added_names("lorpman.methods"):
        return load_added("lorpman.methods", name, Method)
    raise unknown("method", name, method_names())
