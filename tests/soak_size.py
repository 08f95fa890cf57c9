"""How long tests of endurance last: ``LORPMAN_SOAK=0.1 make soak`` is a tenth of it."""

import os

_SHARE = float(os.environ.get("LORPMAN_SOAK", "1"))


def soaked(count):
    """So many cases, kills or seconds of the whole size, and 1 at least."""
    return max(1, round(count * _SHARE))
