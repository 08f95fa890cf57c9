"""The lock of networks whose weights are put in and taken out."""

import copy
import pickle
import threading

from lorpman.manifold.one_caller import OneCallerAtATime


def test_a_second_thread_waits_and_the_same_one_does_not():
    lock, order = OneCallerAtATime(), []

    def other():
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock, lock:
        thread.start()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_copies_are_fresh_locks():
    lock = OneCallerAtATime()
    with lock:
        for fresh in (copy.deepcopy(lock), pickle.loads(pickle.dumps(lock))):
            taken = []
            thread = threading.Thread(target=lambda f=fresh, t=taken: [f.__enter__(), t.append(1)])
            thread.start()
            thread.join(1)
            assert taken
