import threading

import pytest
import torch

from lorpman.errors import UsageError
from lorpman.lab.workers import Workers


def test_one_worker_goes_in_order():
    assert list(Workers().each(lambda x, y: x * y, [(1, 2), (3, 4), (5, 6)])) == [2, 12, 30]


def test_jobs_run_at_the_same_time():
    # Each waits for the other one: in order, nobody would come back.
    meeting = threading.Barrier(2, timeout=30)
    results = Workers(jobs=2).each(lambda x: (meeting.wait(), x)[1], [(1,), (2,)])
    assert sorted(results) == [1, 2]


def test_what_ends_first_comes_first():
    second_done = threading.Event()

    def work(x):
        if x == 1:
            assert second_done.wait(30)
        return x

    results = Workers(jobs=2).each(work, [(1,), (2,)])
    assert next(results) == 2
    second_done.set()
    assert next(results) == 1


def test_jobs_share_the_threads():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(6)
        threads = [Workers(jobs=jobs).threads for jobs in (1, 2, 4, 16)]
    finally:
        torch.set_num_threads(before)
    assert threads == [6, 3, 1, 1]
    assert Workers(scheduler="tcp://there:1").threads is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jobs": 0}, "jobs must be a whole number of at least 1, got 0"),
        ({"jobs": 2, "scheduler": "tcp://there:1"}, "not both"),
    ],
)
def test_bad_input_is_refused(options, message):
    with pytest.raises(UsageError, match=message):
        Workers(**options)


@pytest.mark.parametrize("address", ["there", "tcp://127.0.0.1:1", "tcp://127.0.0.1:99999"])
def test_an_address_where_nobody_answers_is_named(address):
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match=f"no Dask scheduler answers at '{address}'"):
        list(Workers(scheduler=address).each(print, [(1,)]))


def test_a_scheduler_without_workers_says_how_to_start_one():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 0, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster:
        workers = Workers(scheduler=cluster.scheduler_address)
        with pytest.raises(UsageError, match="start one with: dask worker"):
            list(workers.each(print, [(1,)]))
