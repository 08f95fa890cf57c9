"""Pictures show what was measured."""

from lorpman.lab.bench.pictures import draw, draw_growth


def test_only_what_was_measured_is_drawn(tmp_path):
    row = {"name": "good", "target": 1.0, "unit": "x", "value": 0.5, "status": "met"}
    skipped = {**row, "name": "data", "value": None, "status": "skipped"}
    described = {"rows": [row, skipped], "studies": []}
    assert draw(described, tmp_path) == [tmp_path / "bench.png"]
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")


def test_growth_is_drawn_along_every_axis(tmp_path):
    point = {"seconds": 1.0, "plain seconds": 0.9, "bytes": 9}
    point |= {"expected seconds": 1.0, "expected bytes": 9}
    axes = {axis: [{**point, axis: 2}, {**point, axis: 4}] for axis in ("m", "r", "b")}
    growth = {"network": "a small one", "base": {"m": 2}, "axes": axes}
    draw_growth(growth, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 1000
