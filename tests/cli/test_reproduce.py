"""``lorpman reproduce``: its choices; the tables are tested in tests/lab."""

from command_line import refused, run
from lorpman.lab.reproduce.registry import REPRODUCTIONS


def test_the_list_names_everything(capsys, tmp_path):
    code, out, _ = run(capsys, "reproduce", "--list", "--data", tmp_path)
    assert code == 0
    assert all(name in out for name in REPRODUCTIONS)


def test_a_name_is_needed(capsys, tmp_path):
    assert "which table or figure?" in refused(capsys, "reproduce", "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()
