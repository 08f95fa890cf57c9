"""``lorpman report``: where the file goes; what is in it is tested in tests/explorer."""

from command_line import files, refused, run


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


def test_a_report_never_replaces_something_else(capsys, tmp_path, trained):
    (tmp_path / "thesis.html").write_text("<title>Years of work</title>")
    before = files(trained)
    for name in before:
        message = refused(capsys, "report", trained, "--to", trained / name)
        assert "it is a part of the run there" in message or "ends in .html" in message
    assert "not a report" in refused(capsys, "report", trained, "--to", tmp_path / "thesis.html")
    assert files(trained) == before
    assert (tmp_path / "thesis.html").read_text() == "<title>Years of work</title>"
    for _ in range(2):
        assert run(capsys, "report", trained, "--to", tmp_path / "report.html")[0] == 0
