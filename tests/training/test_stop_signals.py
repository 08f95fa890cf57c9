import os
import signal
import threading

import pytest

from lorpman.training.stop_signals import stop_requests

BOTH = [signal.SIGINT, signal.SIGTERM]


class Usual(Exception):
    """What the handlers do that were there before."""


@pytest.fixture(autouse=True)
def _handlers():
    def usual(number, frame):
        raise Usual

    before = {number: signal.signal(number, usual) for number in BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", BOTH)
@pytest.mark.parametrize("second", BOTH)
def test_the_first_signal_is_a_request_and_the_second_acts_as_usual(number, second):
    with stop_requests(True) as stop:
        assert stop.signal == 0
        os.kill(os.getpid(), number)
        assert stop.signal == number
        with pytest.raises(Usual):
            os.kill(os.getpid(), second)
        assert stop.signal == number


@pytest.mark.parametrize("number", BOTH)
def test_after_the_block_signals_act_as_usual(number):
    with pytest.raises(ZeroDivisionError), stop_requests(True) as stop:
        raise ZeroDivisionError
    with pytest.raises(Usual):
        os.kill(os.getpid(), number)
    assert stop.signal == 0


@pytest.mark.parametrize("number", BOTH)
def test_without_a_checkpoint_to_write_signals_act_as_usual(number):
    with stop_requests(False) as stop, pytest.raises(Usual):
        os.kill(os.getpid(), number)
    assert stop.signal == 0


def test_a_thread_leaves_the_handlers_alone():
    """Python lets only the main thread have signal handlers."""
    before, inside = [signal.getsignal(number) for number in BOTH], []

    def work():
        with stop_requests(True) as stop:
            inside.append((stop.signal, [signal.getsignal(number) for number in BOTH]))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == [(0, before)]
