"""Ctrl-C and SIGTERM, turned into a request that training answers between two steps."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Which signal has asked to stop, if any."""

    def __init__(self) -> None:
        self.signal: int = 0


@contextmanager
def stop_requests(enabled: bool) -> Iterator[Stop]:
    """Catch the first signal while the block runs; the second one acts as usual."""
    stop = Stop()
    # Python lets only the main thread have signal handlers.
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    usual = {number: signal.getsignal(number) for number in SIGNALS}

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        stop.signal = number
        put_back()

    def put_back() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    for number in SIGNALS:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        put_back()
