"""``lorpman problems``."""

from command_line import run
from lorpman.lab.problems.registry import PROBLEMS


def test_every_problem_has_one_line_with_a_summary(capsys):
    code, out, _ = run(capsys, "problems")
    assert code == 0
    rows = [line.split(maxsplit=1) for line in out.splitlines()]
    assert [name for name, _ in rows] == list(PROBLEMS)
