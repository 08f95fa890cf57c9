import dataclasses

from lorpman.lab.problems.own_problem import find_problem
from lorpman.lab.sweep import Sweep
from small_problem import SOURCE


def test_the_presets_ranges_are_those_of_the_paper():
    assert Sweep.make("multimnist", "lorpman", 0, {}, {}).ranges == {
        "scale": [1, 2, 4, 6],
        "freeze_epoch": [4, 6, 8],
    }
    fixed = Sweep.make("multimnist", "lorpman", 0, {"scale": 2}, {})
    assert fixed.ranges == {"freeze_epoch": [4, 6, 8]}
    assert fixed.combinations() == 3
    # A range of whole numbers stays one, though the preset holds floats.
    assert fixed.spec({"freeze_epoch": 4.0}).training.freeze_epoch == 4


def test_the_command_names_a_file_as_a_person_in_its_folder_does(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(SOURCE + "OTHER = PROBLEM\n")
    monkeypatch.chdir(tmp_path)
    sweep = Sweep.make("mine.py", "lorpman", 0, {}, {"rank": [1, 2]})
    assert sweep.command({"rank": 2}).startswith("lorpman train mine.py --method lorpman ")
    other = Sweep.make("mine.py:OTHER", "lorpman", 0, {}, {"rank": [1, 2]})
    assert " mine.py:OTHER " in other.command({})
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert f" {tmp_path / 'mine.py'} " in sweep.command({})


def test_a_changed_problem_file_is_another_study(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE)
    before = find_problem(str(tmp_path / "mine.py"))
    ranges = {"rank": [1, 2]}
    names = {
        Sweep.make(problem, "lorpman", 0, {}, ranges).name()
        for problem in (before, dataclasses.replace(before, source="0" * 64))
    }
    assert len(names) == 2
