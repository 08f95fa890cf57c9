"""``lorpman explore`` and ``lorpman report`` on the command line."""

import socket
import subprocess
import sys

import pytest

from command_line import refused, run


def test_bad_input_is_one_line(capsys, tmp_path, digits):
    assert "no run directory" in refused(capsys, "explore", tmp_path / "none")
    assert "no run directory" in refused(capsys, "report", tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "no run at" in refused(capsys, "explore", tmp_path / "empty")
    assert "Invalid value for '--port'" in refused(capsys, "explore", digits, "--port", "70000")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "choose another --port" in refused(capsys, "explore", digits, "--port", port)
    assert "cannot listen on" in refused(capsys, "explore", digits, "--host", "203.0.113.1")
    assert "cannot write" in refused(capsys, "report", digits, "--to", tmp_path / "no" / "r.html")


@pytest.mark.parametrize("command", ["explore", "report"])
def test_a_missing_extra_is_named(capsys, digits, monkeypatch, command):
    for name in ("dash", "plotly"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "pip install 'lorpman[explore]'" in refused(capsys, command, digits)


def test_a_report_is_written_into_the_run_or_elsewhere(capsys, digits, tmp_path):
    code, out, _ = run(capsys, "report", digits, "--to", tmp_path / "r.html")
    assert code == 0
    assert out == f"report      {tmp_path / 'r.html'}\n"
    page = (tmp_path / "r.html").read_text()
    assert "What you can have" in page
    assert "<td>seed</td><td>0</td>" in page
    assert "<td>recipe</td><td>none</td>" in page


def test_the_library_and_the_commands_stay_light():
    script = (
        "import sys, lorpman, lorpman.cli.main; "
        "sys.exit(any(name in sys.modules for name in ('dash', 'plotly', 'flask')))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
