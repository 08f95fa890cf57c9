"""``lorpman compare``: the table of methods; what it holds is tested in tests/lab."""

from command_line import run


def test_compare_prints_the_table(capsys, tmp_path):
    code, out, _ = run(
        capsys, "compare", "toy", "--methods", "pamal", "--seeds", "0", "--out", tmp_path,
        "--set", "epochs=1", "--quiet",
    )  # fmt: skip
    assert code == 0
    assert out.splitlines()[2].startswith("| pamal | ")
    assert (tmp_path / "comparison.md").read_text() in out
