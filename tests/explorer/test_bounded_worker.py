"""One thread, and a limit on who waits for it."""

import threading

import pytest

from lorpman.explorer.bounded_worker import BoundedWorker, Busy


def test_too_many_at_once_are_turned_away():
    worker = BoundedWorker(1)

    def ask_again():
        with pytest.raises(Busy):
            worker.run(lambda: None)
        return "done"

    assert worker.run(ask_again) == "done"
    assert worker.run(lambda: "again") == "again"
    worker.close()


def test_all_work_is_done_in_one_thread_and_errors_come_back():
    worker = BoundedWorker(4)
    names = {worker.run(threading.get_ident) for _ in range(5)}
    assert len(names) == 1
    assert threading.get_ident() not in names
    with pytest.raises(ZeroDivisionError):
        worker.run(lambda: 1 // 0)
    assert worker.run(lambda: "still there") == "still there"
    worker.close()
