"""Every part of the benchmark has a name of its own."""

from lorpman.lab.bench.registry import ROWS, STUDIES


def test_names_differ_so_that_only_can_choose():
    names = [part.name for part in (*ROWS, *STUDIES)]
    assert len(set(names)) == len(names)
    assert len(ROWS) == 13


def test_every_target_is_positive_and_has_a_known_unit():
    for row in ROWS:
        assert row.target > 0
        assert row.unit in ("x", "s", "%")
