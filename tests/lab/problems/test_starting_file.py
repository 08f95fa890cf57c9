import pytest

import lorpman as lp
from lorpman.lab.problems.starting_file import write_starting_file


@pytest.mark.parametrize("kind", ["tabular", "image", "text"])
def test_it_trains_as_it_stands(tmp_path, kind):
    file = tmp_path / f"my_{kind}.py"
    write_starting_file(file, kind)
    run = lp.train(str(file), out=tmp_path / "run", epochs=1, progress=False)
    assert run.problem.name == f"my_{kind}"
    assert run.front.hypervolume() > 0
    assert "{" not in file.read_text().split('"""')[1]


def test_nothing_is_overwritten(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("mine")
    with pytest.raises(lp.UsageError, match="is there already"):
        write_starting_file(file)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [("mine.txt", "text", "must end in .py"), ("mine.py", "sound", "unknown kind 'sound'")],
)
def test_what_cannot_be_written_is_refused(tmp_path, name, kind, message):
    with pytest.raises(lp.UsageError, match=message):
        write_starting_file(tmp_path / name, kind)
    assert list(tmp_path.iterdir()) == []
