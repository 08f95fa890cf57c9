"""``lorpman data``: fetching is tested in tests/lab/datasets."""

from command_line import refused, run


def test_a_generated_problem_needs_no_files(capsys, tmp_path):
    code, out, _ = run(capsys, "data", "toy", "--data", tmp_path)
    assert (code, out) == (0, "toy needs no files\n")


def test_an_unknown_problem_is_not_one_without_files(capsys, tmp_path):
    assert "did you mean 'multimnist'?" in refused(capsys, "data", "multimnst", "--data", tmp_path)
