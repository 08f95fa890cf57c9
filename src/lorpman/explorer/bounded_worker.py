"""One thread that works off what all requests ask for, and refuses when too much waits."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class Busy(Exception):
    """More was asked for than can be answered in reasonable time."""


class BoundedWorker:
    """One thread for everything of a kind.

    A new thread per request would also mean a new set of torch's own threads per request; one
    that stays keeps memory steady, and computing twice at once would be no faster.

    Args:
        most: How many requests may wait or be worked on at a time.
    """

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._room = threading.BoundedSemaphore(most)

    def run(self, work: Callable[[], Result]) -> Result:
        """Wait for the thread, and return the result of ``work``.

        Args:
            work: What the thread is to call.

        Raises:
            Busy: If too many wait already; at once.
        """
        # Not blocking: a queue without end would answer questions that nobody asks any more.
        if not self._room.acquire(blocking=False):
            raise Busy
        try:
            return self._pool.submit(work).result()
        finally:
            self._room.release()

    def close(self) -> None:
        """End the thread after what it does now; what waits is given up."""
        self._pool.shutdown(wait=False, cancel_futures=True)
