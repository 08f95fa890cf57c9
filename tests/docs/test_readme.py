"""The README's example runs as it stands, and is as short as it says."""

import re
from pathlib import Path

import lorpman

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_example_runs(capsys):
    assert EXAMPLES
    for example in EXAMPLES:
        names = {}
        exec(compile(example, str(README), "exec"), names)
        assert type(names["net"]) is lorpman.SharedBottom
        assert names["front"].hypervolume() > 0.5
        assert "tensor(" in capsys.readouterr().out


def test_the_example_is_fifteen_lines():
    assert len([line for line in EXAMPLES[0].splitlines() if line.strip()]) <= 15


def test_every_file_that_is_named_is_there():
    text = README.read_text()
    for name in re.findall(r"\]\((docs/[^)]+)\)|`((?:docs/|[A-Z]+)[\w./-]*\.md)`", text):
        assert (README.parent / (name[0] or name[1])).is_file(), name
