"""What is kept of a run is enough, and is read back exactly."""

import json

import pytest
import torch

from lorpman import Front, UsageError
from lorpman.lab.reproduce import run_record
from lorpman.lab.reproduce.run_record import (
    RunRecord,
    code_commit,
    compact_json,
    read_records,
    record_run,
)


@pytest.fixture
def directory(made):
    return next((made[0] / "runs" / "multidigits").glob("*rank=1*-0"))


def test_a_record_has_the_runs_own_front_and_facts(directory):
    record = record_run(directory, {"rank": 1}, {"hypervolume": 0.5}, "losses")
    front, kept = Front.load(directory / "front.json"), record.front
    assert torch.equal(kept.alphas, front.alphas)
    assert torch.equal(kept.scores, front.scores)
    assert torch.equal(kept.losses, front.losses)
    described = json.loads((directory / "run.json").read_text())
    assert record.settings == described["settings"]
    assert record.parameters == described["parameters"]
    assert record.hypervolume == float(front.hypervolume())
    assert record.hypervolume_error == 0.0


def test_a_record_survives_its_json(directory):
    record = record_run(directory, {"rank": 1}, {"hypervolume": 0.5}, "losses")
    written = json.loads(json.dumps(record.to_json()))
    assert RunRecord.from_json(written).to_json() == written


def test_only_what_a_figure_draws_is_kept_of_an_epoch(directory):
    assert record_run(directory).history == []
    (note,) = record_run(directory, history="losses").history
    assert set(note) == {"number", "losses"}
    assert all(float(f"{loss:.6g}") == loss for loss in note["losses"].values())


def test_a_loss_that_is_no_number_is_refused(directory):
    described = record_run(directory).to_json()
    described["front"]["losses"][0][0] = None
    record = RunRecord.from_json(described)
    with pytest.raises(UsageError, match="losses must be finite"):
        _ = record.front


def test_anything_else_is_refused(tmp_path):
    with pytest.raises(UsageError, match="not the record of a run"):
        RunRecord.from_json({"problem": "toy", "front": {}})
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageError, match="holds no records"):
        read_records(tmp_path / "other.json")


def test_files_have_a_line_for_each_run_and_are_json(made, tmp_path):
    described = made[1].to_json()
    text = compact_json(described)
    assert json.loads(text) == json.loads(json.dumps(described))
    assert sum(line.startswith('  {"problem"') for line in text.splitlines()) == 4
    (tmp_path / "table.json").write_text(text)
    assert [record.seed for record in read_records(tmp_path / "table.json")] == [0, 1, 0, 1]


def test_the_commit_is_the_packages_own_or_none(tmp_path, monkeypatch):
    assert all(letter in "0123456789abcdef" for letter in code_commit())
    elsewhere = tmp_path / "lorpman" / "lab" / "reproduce"
    elsewhere.mkdir(parents=True)
    monkeypatch.setattr(run_record, "__file__", str(elsewhere / "run_record.py"))
    assert code_commit() == ""
