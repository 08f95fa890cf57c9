"""Training what is missing, sharing what is there, and what is written."""

import json
import shutil
from dataclasses import replace

import pytest

from lorpman import Front, UsageError
from lorpman.lab.reproduce.data_requirements import GENERATED
from lorpman.lab.reproduce.measures import MEASURED
from lorpman.lab.reproduce.reproduction import Line
from lorpman.lab.reproduce.train_and_measure import reproduce, write
from small_reproduction import QUICK, SMALL, make_small


def _values(outcome):
    columns = [column.key for column in SMALL.columns]
    return [[line.values(column) for column in columns] for line in outcome.lines]


def test_every_line_has_its_runs_and_the_rest_says_why_not(made):
    folder, outcome = made
    lines = {measured.line.label: measured for measured in outcome.lines}
    for label in ("rank 1", "rank 2"):
        volumes = [float(record.front.hypervolume()) for record in lines[label].records]
        assert [record.seed for record in lines[label].records] == [0, 1]
        assert lines[label].values("hypervolume") == tuple(volumes)
        assert lines[label].state == ""
    assert lines["rank 99"].state == "not at this scale"
    assert {run.name for run in (folder / "runs" / "multidigits").iterdir()} == {
        planned.name for planned in SMALL.planned_runs("laptop", (0, 1))
    }


def test_the_three_files_are_called_as_the_table_is(made):
    folder, _ = made
    names = {path.name for path in (folder / "out").iterdir()}
    assert names == {f"small-ablation.{suffix}" for suffix in ("md", "json", "png")}
    assert (folder / "out" / "small-ablation.png").read_bytes().startswith(b"\x89PNG")


def test_the_json_holds_all_fronts_and_what_the_figure_draws(made):
    folder, _ = made
    written = json.loads((folder / "out" / "small-ablation.json").read_text())
    runs = [run for row in written["rows"] for run in row["runs"]]
    assert len(runs) == 4
    for run in runs:
        name = f"lorpman-*rank={run['settings']['rank']}-{run['seed']}"
        (directory,) = (folder / "runs" / "multidigits").glob(name)
        front = Front.load(directory / "front.json")
        assert run["front"]["scores"] == front.scores.tolist()
        assert [note["number"] for note in run["history"]] == [1]
        assert set(run["history"][0]["losses"]) == set(front.tasks)


def test_what_is_there_is_shared_whatever_it_is_called(made, tmp_path, monkeypatch):
    runs = tmp_path / "runs" / "multidigits"
    shutil.copytree(made[0] / "runs" / "multidigits", runs)
    next(runs.glob("*rank=1*-0")).rename(runs / "lorpman-of-another-table")

    def fail(*arguments, **options):
        raise AssertionError("trained again")

    monkeypatch.setattr("lorpman.lab.reproduce.train_and_measure.try_training", fail)
    assert _values(make_small(tmp_path / "runs")) == _values(made[1])


def test_runs_without_weights_still_make_the_table(made, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(made[0] / "runs", runs)
    for weights in runs.rglob("*.safetensors"):
        weights.unlink()
    assert _values(make_small(runs, training=False)) == _values(made[1])
    # The correlation needed weights, and was remembered.
    assert any("correlation" in path.read_text() for path in runs.rglob(MEASURED))


def test_an_unfinished_run_without_weights_does_not_count(made, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(made[0] / "runs", runs)
    cut = next(runs.glob("multidigits/*rank=1*-0"))
    (cut / "metrics.jsonl").write_text("")
    for weights in cut.glob("*.safetensors"):
        weights.unlink()
    again = make_small(runs, training=False)
    assert [record.seed for record in again.lines[0].records] == [1]
    assert "(seeds 1 only)" in write(again, tmp_path / "out")[0].read_text()


def test_what_was_not_run_is_said_to_be_missing(made, tmp_path):
    runs = tmp_path / "runs"
    shutil.copytree(made[0] / "runs", runs)
    for run in runs.glob("multidigits/*rank=2*"):
        shutil.rmtree(run)
    again = make_small(runs, training=False)
    assert again.lines[1].state == "not run"
    assert "| rank 2 | not run |" in write(again, tmp_path / "out")[0].read_text()


def test_a_failure_is_told_under_the_table(made, tmp_path):
    bad = Line("diverges", "lorpman", None, {**QUICK, "learning_rate": 1e30, "optimizer": "sgd"})
    outcome = make_small(made[0] / "runs", replace(SMALL, lines=(*SMALL.lines, bad)), seeds=[0])
    assert outcome.lines[3].state == "not run"
    assert "failed: " in write(outcome, tmp_path)[0].read_text()


def test_noise_never_passes_for_data(noise):
    root, outcome = noise
    assert outcome.generated
    assert not outcome.comparable
    assert (root / "runs" / "cityscapes-generated").is_dir()
    assert {record.settings["epochs"] for record in outcome.records} == {2}
    assert outcome.lines[1].records[0].settings["freeze_epoch"] == 1
    marker = root / "cityscapes" / GENERATED
    marker.unlink()
    try:
        with pytest.raises(UsageError, match="holds no finished run"):
            reproduce(outcome.reproduction, "laptop", root / "runs", root, training=False)
    finally:
        marker.write_text("noise")


def test_a_folder_that_cannot_be_made_is_named(made, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write to"):
        write(made[1], tmp_path / "file" / "out")
