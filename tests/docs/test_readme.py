"""The README's examples run as they stand, and are as short as it says."""

import re
from pathlib import Path

import pytest

import lorpman

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
FROM_NETWORK_TO_PAGE, OWN_LOOP = EXAMPLES


def _lines(example):
    return [line for line in example.splitlines() if line.strip()]


def test_the_first_example_leads_from_a_network_to_a_front_compared_on_a_page(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(FROM_NETWORK_TO_PAGE, str(README), "exec"), names)
    assert type(names["net"]) is lorpman.SharedBottom
    assert [row.method for row in names["table"].rows] == ["lorpman", "pamal", "retrain"]
    assert all(row.mean > 0.5 for row in names["table"].rows)
    assert "| retrain |" in capsys.readouterr().out
    assert (tmp_path / "mine.html").stat().st_size > 100_000


def test_the_second_example_runs(capsys):
    names = {}
    exec(compile(OWN_LOOP, str(README), "exec"), names)
    assert type(names["net"]) is lorpman.SharedBottom
    assert names["front"].hypervolume() > 0.5
    assert "tensor(" in capsys.readouterr().out


@pytest.mark.parametrize(("example", "most"), [(FROM_NETWORK_TO_PAGE, 29), (OWN_LOOP, 15)])
def test_the_examples_are_as_short_as_they_say(example, most):
    assert len(_lines(example)) <= most


def test_every_file_that_is_named_is_there():
    text = README.read_text()
    for name in re.findall(r"\]\((docs/[^)]+)\)|`((?:docs/|[A-Z]+)[\w./-]*\.md)`", text):
        assert (README.parent / (name[0] or name[1])).is_file(), name
