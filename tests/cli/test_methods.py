"""``lorpman methods``."""

from command_line import run
from lorpman.lab.methods.registry import METHODS


def test_every_method_has_one_line_with_its_kind(capsys):
    code, out, _ = run(capsys, "methods")
    assert code == 0
    rows = [line.split(maxsplit=2) for line in out.splitlines()]
    assert [row[:2] for row in rows] == [[name, row.kind] for name, row in METHODS.items()]
