"""``lorpman report``: where the file goes; what is in it is tested in tests/explorer."""

from command_line import refused, run


def test_a_report_is_written_where_asked(capsys, trained, tmp_path):
    code, out, _ = run(capsys, "report", trained, "--to", tmp_path / "r.html")
    assert code == 0
    assert out == f"report      {tmp_path / 'r.html'}\n"
    page = (tmp_path / "r.html").read_text()
    assert "What you can have" in page
    assert "<td>seed</td><td>0</td>" in page
    assert "<td>recipe</td><td>none</td>" in page


def test_bad_input_is_one_line(capsys, tmp_path, trained):
    assert "no run directory" in refused(capsys, "report", tmp_path / "none")
    assert "cannot write" in refused(capsys, "report", trained, "--to", tmp_path / "no" / "r.html")
