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
        """Its number; 0 for none."""


@contextmanager
def stop_requests(enabled: bool) -> Iterator[Stop]:
    """Catch the first signal while the block runs; the second one acts as usual.

    So a person who presses Ctrl-C twice does not wait for a step that hangs.

    Args:
        enabled: False leaves signals alone: without a checkpoint there is nothing to wait for.
    """
    stop = Stop()
    # Python lets only the main thread have signal handlers.
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    usual = {number: signal.getsignal(number) for number in SIGNALS}

    def request_stop(number: int, frame: FrameType | None) -> None:
        del frame
        # Only a note: to save in a handler could come in the middle of a step.
        stop.signal = number
        restore_handlers()

    def restore_handlers() -> None:
        for number, handler in usual.items():
            signal.signal(number, handler)

    for number in SIGNALS:
        signal.signal(number, request_stop)
    try:
        yield stop
    finally:
        restore_handlers()
