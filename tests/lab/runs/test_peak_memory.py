import resource
import sys
from types import SimpleNamespace

import pytest
import torch

from lorpman.lab.runs.peak_memory import peak_memory


def test_peak_memory_never_falls():
    before = peak_memory()
    block = bytearray(2**24)
    assert peak_memory() >= before > len(block)


@pytest.mark.parametrize(("system", "unit"), [("linux", 1024), ("darwin", 1)])
def test_it_is_in_bytes_on_every_system(monkeypatch, system, unit):
    usage = SimpleNamespace(ru_maxrss=7)
    monkeypatch.setattr(resource, "getrusage", lambda who: usage)
    monkeypatch.setattr(sys, "platform", system)
    assert peak_memory() == 7 * unit


def test_a_gpu_that_is_used_counts_instead(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 5)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    assert peak_memory() > 5
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert peak_memory() == 5


def test_a_system_that_does_not_tell_has_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    assert peak_memory() == 0
