"""``lorpman reproduce`` on the command line."""

import json
from dataclasses import replace

from command_line import refused, run
from lorpman.lab.reproduce.registry import REPRODUCTIONS
from small_reproduction import SMALL


def test_the_list_says_what_is_needed_and_what_is_here(tmp_path, capsys):
    code, out, _ = run(capsys, "reproduce", "--list", "--data", tmp_path)
    assert code == 0
    assert all(name in out for name in REPRODUCTIONS)
    assert "utkface (data missing)" in out


def test_bad_input_is_one_line(tmp_path, capsys):
    options = ("--data", tmp_path, "--runs", tmp_path / "runs", "--out", tmp_path / "out")
    wrong = refused(capsys, "reproduce", "multimnist-tabel", *options)
    assert "did you mean 'multimnist-table'" in wrong
    assert all(name in wrong for name in REPRODUCTIONS)
    assert "which table or figure?" in refused(capsys, "reproduce", *options)
    assert "lorpman data utkface" in refused(capsys, "reproduce", "utkface-table", *options)
    assert "--seeds expects" in refused(capsys, "reproduce", "toy-figure", "--seeds", "a", *options)
    nothing = refused(capsys, "reproduce", "toy-figure", "--no-training", *options)
    assert "holds no finished run" in nothing
    assert not list(tmp_path.iterdir())


def test_a_table_is_trained_written_and_printed(tmp_path, capsys, monkeypatch):
    table = replace(SMALL, lines=SMALL.lines[:1])
    monkeypatch.setitem(REPRODUCTIONS, table.name, table)
    places = ("--runs", tmp_path / "runs", "--out", tmp_path / "out")
    code, out, err = run(capsys, "reproduce", table.name, "--seeds", "1", *places)
    assert code == 0
    assert "(1 of 1)" in err
    assert (tmp_path / "out" / f"{table.name}.md").read_text() in out
    assert f"picture  {tmp_path / 'out' / table.name}.png" in out
    made = json.loads((tmp_path / "out" / f"{table.name}.json").read_text())
    assert [run["seed"] for run in made["rows"][0]["runs"]] == [1]
    # Results hold no run directories: those are where --runs says.
    assert len(list((tmp_path / "runs").rglob("run.json"))) == 1
    assert not list((tmp_path / "out").rglob("run.json"))
