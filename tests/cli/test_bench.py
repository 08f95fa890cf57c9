"""``lorpman bench`` on the command line; bad input is one line and exit code 2."""

import json

import pytest

from lorpman.cli.main import main
from lorpman.lab.bench import registry
from lorpman.lab.bench.benchmark_row import BenchmarkRow, Measurement


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main(["bench", *map(str, arguments)])
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


@pytest.fixture
def tiny_rows(monkeypatch):
    def broken(conditions):
        raise RuntimeError("broken")

    tiny = (
        BenchmarkRow(
            "tiny", "nothing much", 1.0, lambda conditions: Measurement(0.5, {"ours": [0.5]})
        ),
        BenchmarkRow("broken", "does not run", 1.0, broken),
    )
    monkeypatch.setattr(registry, "ROWS", tiny)


def test_table_numbers_and_picture(capsys, tmp_path, tiny_rows):
    code, out, _ = run(capsys, "--only", "tiny", "--out", tmp_path / "new", "--threads", 1)
    assert code == 0
    assert "tiny  nothing much  1.00 x   0.50 x    met" in out
    assert json.loads((tmp_path / "new" / "bench.json").read_text())["rows"][0]["value"] == 0.5
    assert (tmp_path / "new" / "bench.png").is_file()


def test_a_failure_is_told_at_the_end(capsys, tmp_path, tiny_rows):
    code, out, err = run(capsys, "--only", "tiny,broken", "--out", tmp_path, "--threads", 1)
    assert code == 1
    assert "tiny  " in out
    assert "FAILED" in out
    assert err.splitlines()[-1].startswith("lorpman: failed: broken; see ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "lenet-stp"], "did you mean 'lenet-step'"),
        (["--only", ""], "unknown row ''"),
        (["--threads", "0"], "--threads must be between 1 and"),
        (["--threads", "many"], "--threads"),
    ],
)
def test_bad_input_is_refused_before_anything_is_measured(capsys, tmp_path, arguments, said):
    code, out, err = run(capsys, *arguments, "--out", tmp_path / "new")
    assert code == 2
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = run(capsys, "--out", tmp_path / "file" / "new", "--only", "import")
    assert code == 2
    assert "cannot write to" in err
