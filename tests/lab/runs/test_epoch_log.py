import json

import pytest
from torch import nn

from lorpman import Convex, Epoch, LowRank, UsageError
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.runs.epoch_log import Notes, peak_memory, read_notes


def _epoch(number):
    return Epoch(number, {"left": 0.5}, None, 1e-3, False, 2.0)


def test_every_epoch_is_a_line_with_its_peak_memory(tmp_path):
    notes = Notes(
        tmp_path / "metrics.jsonl", get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    )
    notes.add(_epoch(1))
    notes.add(_epoch(2))
    lines = read_notes(tmp_path)
    assert [line["number"] for line in lines] == [1, 2]
    assert all(line["peak_memory"] > 2**20 for line in lines)
    assert notes.seconds() == 4.0


def test_what_a_manifold_traces_is_noted_from_the_start(tmp_path):
    model = Convex(nn.Sequential(nn.Linear(2, 2)), 2)
    notes = Notes(tmp_path / "metrics.jsonl", get_problem("multidigits"), model)
    notes.add(_epoch(1))
    start, first = read_notes(tmp_path)
    assert start == {"number": 0, "similarity": model.similarity()}
    assert first["similarity"] == model.similarity()


def test_resuming_drops_what_was_noted_but_not_saved(tmp_path):
    problem, model = get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    notes = Notes(tmp_path / "metrics.jsonl", problem, model)
    for number in (1, 2, 3):
        notes.add(_epoch(number))
    again = Notes(tmp_path / "metrics.jsonl", problem, model)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"number": 4, "los')  # killed while writing a line
    again.add(_epoch(3))
    assert [note["number"] for note in read_notes(tmp_path)] == [1, 2, 3]


def test_peak_memory_never_falls():
    before = peak_memory()
    block = bytearray(2**24)
    assert peak_memory() >= before > len(block)


@pytest.mark.parametrize("text", [None, "{", json.dumps({"number": 1}) + "\nnonsense\n"])
def test_damaged_notes_are_named(tmp_path, text):
    if text is not None:
        (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(UsageError, match="notes of run"):
        read_notes(tmp_path)


@pytest.mark.parametrize("foreign", ["{}", "[]", "3", "nonsense", '{"number": "x"}', "\x00"])
def test_resuming_drops_what_is_no_note(tmp_path, foreign):
    problem, model = get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    path = tmp_path / "metrics.jsonl"
    Notes(path, problem, model).add(_epoch(1))
    path.write_text(path.read_text() + foreign + "\n")
    again = Notes(path, problem, model)
    assert again.seconds() == 2.0
    again.add(_epoch(2))
    assert [note["number"] for note in read_notes(tmp_path)] == [1, 2]


def test_resuming_without_notes_starts_new_ones(tmp_path):
    notes = Notes(
        tmp_path / "metrics.jsonl", get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    )
    (tmp_path / "metrics.jsonl").unlink()
    notes.add(_epoch(3))
    assert [note["number"] for note in read_notes(tmp_path)] == [3]
