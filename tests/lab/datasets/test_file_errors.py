from pathlib import Path

from lorpman.lab.datasets.file_errors import damaged_file, missing_file


def test_a_missing_file_comes_with_the_command_that_gets_it() -> None:
    error = missing_file(Path("d/census/x.gz"), "census", Path("d"))
    assert str(error) == "d/census/x.gz not found; run: lorpman data census --data d"


def test_a_damaged_file_comes_with_what_is_wrong() -> None:
    error = damaged_file(Path("x.gz"), "holds no rows")
    assert str(error) == "x.gz holds no rows; delete it and get it again"
