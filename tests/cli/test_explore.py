"""``lorpman explore``: addresses and runs that it refuses; the page is tested in tests/explorer."""

import socket
import sys

import pytest

from command_line import run


def refused(capsys, *arguments):
    """The one line of refusal, behind what was said while opening."""
    code, out, err = run(capsys, *arguments)
    *before, line = err.splitlines()
    assert code == 2
    assert out == ""
    assert line.startswith("lorpman: ")
    assert not any("Traceback" in other or other.startswith("lorpman: ") for other in before)
    return line


def test_bad_input_is_one_line(capsys, tmp_path, trained):
    assert "no run directory" in refused(capsys, "explore", tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "no run at" in refused(capsys, "explore", tmp_path / "empty")
    assert "Invalid value for '--port'" in refused(capsys, "explore", trained, "--port", "70000")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert "choose another --port" in refused(capsys, "explore", trained, "--port", port)
    assert "cannot listen on" in refused(capsys, "explore", trained, "--host", "203.0.113.1")
    assert "the host to listen on is empty" in refused(capsys, "explore", trained, "--host", "")


@pytest.mark.parametrize("command", ["explore", "report"])
def test_a_missing_extra_is_named(capsys, trained, monkeypatch, command):
    for name in ("dash", "plotly"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "pip install 'lorpman[explore]'" in refused(capsys, command, trained)
