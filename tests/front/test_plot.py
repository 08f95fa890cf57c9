"""Pictures: every kind of front gives one, nothing overlaps the edge, errors leave no file."""

from pathlib import Path

import pytest

from front.fronts import spread_front
from front.pictures import svg_text
from lorpman.errors import UsageError
from lorpman.front.plot import plot_front, plot_fronts


@pytest.mark.parametrize("n", [1, 2, 12])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 12])
def test_every_size_gives_a_picture(tmp_path: Path, n: int, m: int) -> None:
    spread_front(n, m).plot(tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("m", [2, 3, 7])
def test_overlays_name_every_front_and_its_volume(tmp_path: Path, m: int) -> None:
    fronts = [spread_front(9, m, name, seed) for seed, name in enumerate(("first", "second", ""))]
    plot_fronts(fronts, tmp_path / "all.svg")
    words = svg_text(tmp_path / "all.svg")
    for name in ("first  (hypervolume", "second  (hypervolume", "front 3  (hypervolume"):
        assert name in words


def test_the_title_holds_the_volume_and_its_error_where_sampled(tmp_path: Path) -> None:
    exact, sampled = spread_front(9, 2, label="lorpman"), spread_front(30, 13)
    plot_front(exact, tmp_path / "2.svg")
    plot_front(sampled, tmp_path / "13.svg", title="Many tasks")
    assert f"hypervolume {exact.hypervolume():#.4g}" in svg_text(tmp_path / "2.svg")
    assert "lorpman" in svg_text(tmp_path / "2.svg")
    assert "±" not in svg_text(tmp_path / "2.svg")
    assert f" ± {sampled.hypervolume().stderr:.1g}" in svg_text(tmp_path / "13.svg")
    assert "Many tasks" in svg_text(tmp_path / "13.svg")


@pytest.mark.parametrize("m", [2, 3, 4])
def test_each_task_says_which_way_is_better(tmp_path: Path, m: int) -> None:
    plot_front(spread_front(9, m, up=(False,) + (True,) * (m - 1)), tmp_path / "front.svg")
    assert "lower is better" in svg_text(tmp_path / "front.svg")


def test_no_global_state_is_touched(tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plot_front(spread_front(3, 2), tmp_path / "front.png")
    assert dict(mpl.rcParams) == before


def test_fronts_of_different_tasks_do_not_share_a_picture(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="same tasks"):
        plot_fronts([spread_front(3, 2), spread_front(3, 3)], tmp_path / "front.png")
    with pytest.raises(UsageError, match="at least one front"):
        plot_fronts([], tmp_path / "front.png")
