"""All methods by name. Their rows are in ``continuous.py``, ``discrete.py`` and ``single.py``."""

from lorpman.errors import unknown
from lorpman.lab.methods.continuous import CONTINUOUS
from lorpman.lab.methods.discrete import DISCRETE
from lorpman.lab.methods.method import Method
from lorpman.lab.methods.single import SINGLE

METHODS = {method.name: method for method in (*CONTINUOUS, *DISCRETE, *SINGLE)}
"""Every method, in the order in which ``lorpman methods`` lists them."""


def get_method(name: str) -> Method:
    """Look a method up.

    Args:
        name: a key of :data:`METHODS`.

    Returns:
        The row of that name.

    Raises:
        UsageError: there is no such method; the message suggests the nearest name.

    >>> get_method("lorpman").kind
    'continuous'
    """
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]
