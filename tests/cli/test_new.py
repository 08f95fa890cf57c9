from command_line import refused, run


def test_it_writes_a_file_that_can_be_trained(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "new", "fresh_start.py", "--kind", "text")
    assert code == 0
    assert "lorpman train fresh_start.py" in out
    assert run(capsys, "train", "fresh_start.py", "--quiet", "--epochs", "1")[0] == 0
    assert (tmp_path / "runs" / "fresh_start-lorpman-0" / "front.png").exists()


def test_it_overwrites_nothing(capsys, tmp_path):
    (tmp_path / "mine.py").write_text("mine")
    assert "is there already" in refused(capsys, "new", tmp_path / "mine.py")
    assert (tmp_path / "mine.py").read_text() == "mine"
