"""The most memory that this process has held."""

import sys

import torch


def peak_memory() -> int:
    """The most bytes that this process has held: on the GPU if it used one, else resident.

    It counts everything since the process began, so it says something about a run only if the
    process did nothing else.

    Returns:
        0 where the system does not tell.
    """
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.max_memory_allocated()
    try:
        import resource
    except ImportError:  # not on Windows
        return 0
    # Linux counts in KiB, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
