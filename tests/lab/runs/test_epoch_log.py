import json

import pytest
from torch import nn

from lorpman import Convex, Epoch, LowRank, UsageError
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.runs.epoch_log import EpochLog, parameters_learned, read_epoch_log
from small_training import exactly


def _epoch(number, hypervolume=None):
    return Epoch(number, {"left": 0.5}, hypervolume, 1e-3, False, 2.0)


def test_every_epoch_is_a_line_with_its_peak_memory(tmp_path):
    log = EpochLog(
        tmp_path / "metrics.jsonl", get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    )
    log.add(_epoch(1))
    log.add(_epoch(2))
    lines = read_epoch_log(tmp_path)
    assert [line["number"] for line in lines] == [1, 2]
    assert all(line["peak_memory"] > 2**20 for line in lines)
    assert log.seconds() == 4.0


def test_what_a_manifold_traces_is_noted_from_the_start(tmp_path):
    model = Convex(nn.Sequential(nn.Linear(2, 2)), 2)
    log = EpochLog(tmp_path / "metrics.jsonl", get_problem("multidigits"), model)
    log.add(_epoch(1))
    start, first = read_epoch_log(tmp_path)
    assert start == {"number": 0, "similarity": model.similarity()}
    assert first["similarity"] == model.similarity()


def test_resuming_drops_what_was_noted_but_not_saved(tmp_path):
    problem, model = get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    log = EpochLog(tmp_path / "metrics.jsonl", problem, model)
    for number in (1, 2, 3):
        log.add(_epoch(number))
    again = EpochLog(tmp_path / "metrics.jsonl", problem, model)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"number": 4, "los')  # killed while writing a line
    again.add(_epoch(3))
    assert [note["number"] for note in read_epoch_log(tmp_path)] == [1, 2, 3]


@pytest.mark.parametrize("text", [None, "{", json.dumps({"number": 1}) + "\nnonsense\n"])
def test_damaged_notes_are_named(tmp_path, text):
    if text is not None:
        (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(UsageError, match="notes of run"):
        read_epoch_log(tmp_path)


@pytest.mark.parametrize("foreign", ["{}", "[]", "3", "nonsense", '{"number": "x"}', "\x00"])
def test_resuming_drops_what_is_no_note(tmp_path, foreign):
    problem, model = get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    path = tmp_path / "metrics.jsonl"
    EpochLog(path, problem, model).add(_epoch(1))
    path.write_text(path.read_text() + foreign + "\n")
    again = EpochLog(path, problem, model)
    assert again.seconds() == 2.0
    again.add(_epoch(2))
    assert [note["number"] for note in read_epoch_log(tmp_path)] == [1, 2]


def test_resuming_without_notes_starts_new_ones(tmp_path):
    log = EpochLog(
        tmp_path / "metrics.jsonl", get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    )
    (tmp_path / "metrics.jsonl").unlink()
    log.add(_epoch(3))
    assert [note["number"] for note in read_epoch_log(tmp_path)] == [3]


def test_parameters_are_those_at_the_end():
    described, lines = {"parameters": 10}, [{"number": 1}, {"number": 2, "parameters": 7}]
    assert parameters_learned(described, lines) == 7
    assert parameters_learned(described, lines[:1]) == 10
    assert parameters_learned(described, []) == 10
    assert parameters_learned({}, []) == 0


class Loggers:
    """Fabric with one logger that keeps what it is told in a file."""

    def __init__(self, folder):
        self.log_dir, self.loggers, self.told, self.saved = folder, [self], [], 0

    def log_dict(self, values, step):
        self.log_dir.mkdir(exist_ok=True)
        (self.log_dir / str(step)).write_text("told")
        self.told.append((step, values))

    def save(self):
        self.saved += 1


def test_loggers_are_told_plain_numbers(tmp_path):
    fabric = Loggers(tmp_path / "csv")
    log = EpochLog(
        tmp_path / "metrics.jsonl",
        get_problem("multidigits"),
        Convex(nn.Sequential(nn.Linear(2, 2)), 2),
        fabric,
    )
    log.add(_epoch(1))
    log.add(_epoch(2, 0.75))
    values = {"loss/left": 0.5, "learning_rate": 1e-3, "seconds": 2.0}
    assert fabric.told == [(1, values), (2, {**values, "hypervolume": 0.75})]
    assert fabric.saved == 2


def test_loggers_of_a_resumed_run_hold_no_epoch_twice(tmp_path):
    problem, model = get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2)
    path, folder = tmp_path / "metrics.jsonl", tmp_path / "csv"
    first = EpochLog(path, problem, model, Loggers(folder))
    for number in (1, 2, 3):
        first.add(_epoch(number))
    (folder / "old").write_text("of the run before")
    again = Loggers(folder)
    EpochLog(path, problem, model, again).add(_epoch(2))
    assert [step for step, _ in again.told] == [1, 2]
    assert sorted(file.name for file in folder.iterdir()) == ["1", "2"]


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    log = EpochLog(path, get_problem("multidigits"), LowRank(nn.Linear(2, 2), 2))

    def full(handle):
        raise OSError(28, "No space left on device")

    log.add(_epoch(1))
    monkeypatch.setattr("os.fsync", full)
    message = exactly(f"cannot write '{path}': No space left on device; make room and resume")
    with pytest.raises(UsageError, match=message):
        log.add(_epoch(2))
