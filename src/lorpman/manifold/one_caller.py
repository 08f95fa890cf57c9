"""A lock for networks whose weights are put in and taken out while they run."""

import threading

import torch


class OneCallerAtATime:
    """A lock that is copied and pickled as a fresh one.

    ``functional_call`` puts tensors into a network and takes them out again. Two threads at once
    would get, and leave behind, each other's weights, so callers of one network take turns.
    """

    def __init__(self) -> None:
        # Reentrant: something inside the network, such as a hook, may ask the manifold again.
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        # A compiler cannot trace a lock, and what it makes swaps nothing.
        if not torch.compiler.is_compiling():
            self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        if not torch.compiler.is_compiling():
            self._lock.release()

    def __reduce__(self) -> tuple[type["OneCallerAtATime"], tuple[()]]:
        return OneCallerAtATime, ()
