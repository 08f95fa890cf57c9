"""Where several calls are made at once: in processes of this machine, or by a Dask cluster."""

import logging
import pickle
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from lorpman.errors import UsageError, check_kind, need, whole_number
from lorpman.lab.own_process import packed

_SECONDS_TO_CONNECT = 10


@dataclass(frozen=True)
class Workers:
    """How many calls run at a time, and where.

    Args:
        jobs: So many on this machine.
        scheduler: The address of a Dask scheduler, whose workers run them instead. They need
            lorpman, and the same folders at the same paths.

    Raises:
        UsageError: If there are no jobs, or both are given.
    """

    jobs: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        whole_number("jobs", self.jobs)
        if self.scheduler is not None:
            check_kind("scheduler", self.scheduler, str, "the address of a Dask scheduler")
        if self.scheduler is not None and self.jobs > 1:
            raise UsageError(
                "--jobs is for this machine, and the scheduler's workers decide how much they "
                "do at once; give --jobs or --scheduler, not both"
            )

    @property
    def several(self) -> bool:
        """Whether anything can happen at the same time."""
        return self.jobs > 1 or self.scheduler is not None

    @property
    def at_once(self) -> int | None:
        """How many calls can run at a time; None where only a scheduler knows."""
        return None if self.scheduler else self.jobs

    @property
    def threads(self) -> int | None:
        """Torch's threads of each call: a fair share here, None where workers decide."""
        return None if self.scheduler else max(1, torch.get_num_threads() // self.jobs)

    def check(self) -> None:
        """Refuse a scheduler that does not answer, before anything is written.

        Raises:
            UsageError: If there is no scheduler at the address, or it has no workers.
        """
        if self.scheduler is not None:
            with _dask(self.scheduler):
                pass

    def each(self, function: Callable[..., Any], calls: Sequence[Sequence[Any]]) -> Iterator[Any]:
        """Call ``function`` with each of ``calls``, as many at a time as there are workers.

        A Dask worker that dies loses only what it did, which another one does again.

        Args:
            function: Must be safe to call in several threads; takes one call's arguments.
            calls: The arguments.

        Yields:
            What the calls return, in the order in which they end.

        Raises:
            UsageError: If there is no scheduler at the address, or it has no workers.
        """
        from joblib import Parallel, delayed

        if not self.several:
            yield from (function(*call) for call in calls)
        elif self.scheduler is None:
            # Threads that only wait: every call starts a process of its own. One call at a time for
            # each, since calls take minutes.
            run = Parallel(self.jobs, "threading", return_as="generator_unordered", batch_size=1)
            yield from run(delayed(function)(*call) for call in calls)
        else:
            # As bytes: joblib would put larger objects on one worker, and lose them with it.
            bundles = [packed(function, tuple(call)) for call in calls]
            with _dask(self.scheduler):
                run = Parallel(-1, return_as="generator_unordered", batch_size=1)
                yield from run(delayed(_call_packed)(one) for one in bundles)


def _call_packed(bundle: bytes) -> Any:
    # Bytes of the process that asked, not of a stranger.
    function, arguments = pickle.loads(bundle)
    return function(*arguments)


@contextmanager
def _dask(address: str) -> Iterator[None]:
    """Let joblib use the cluster behind a scheduler; its failures are one line."""
    from joblib import parallel_config

    distributed = need("distributed", extra="cluster")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        # Asked plainly first: a client that finds nobody complains again when it is deleted.
        where = distributed.comm.get_address_host_port(address)
        socket.create_connection(where, timeout=_SECONDS_TO_CONNECT).close()
        client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no Dask scheduler answers at '{address}' ({error}); start one with: dask scheduler"
        ) from None
    with client:
        if not client.ncores():
            raise UsageError(
                f"the Dask scheduler at {address} has no workers; start one with: "
                f"dask worker {address}"
            )
        try:
            with parallel_config(backend="dask", client=client):
                yield
        except distributed.scheduler.KilledWorker as error:
            raise UsageError(f"a run ended every worker that it was given to: {error}") from None
