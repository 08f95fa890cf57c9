from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from front.fronts import curve, mixed, spread_front
from front.pictures import svg_text
from lorpman.front.front import Front
from lorpman.front.plot import plot_front
from lorpman.front.plot_curves import draw_curves, draw_plane


def test_both_ends_of_a_curve_carry_their_preference(tmp_path: Path) -> None:
    alphas = torch.tensor([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    ends = Front(alphas, 0.5 + alphas / 2, ("a", "b"), (True, True), (0.0, 0.0))
    plot_front(ends, tmp_path / "front.svg")
    assert "α = (1, 0)" in svg_text(tmp_path / "front.svg")
    assert "α = (0, 1)" in svg_text(tmp_path / "front.svg")


def _axes(fronts: list[Front], apart: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
    figure = Figure()
    draw_curves(figure, fronts, apart)
    return figure.axes[0]


def test_non_dominated_points_are_joined_in_the_order_of_the_first_task() -> None:
    (line,) = _axes([curve()]).lines
    assert line.get_xdata().tolist() == [0.5, 0.8, 0.9, 0.95]
    assert line.get_ydata().tolist() == [0.95, 0.93, 0.88, 0.6]


def test_points_of_a_discrete_method_are_not_joined() -> None:
    fronts = [spread_front(5, 2, name) for name in ("one", "two")]
    assert len(_axes(fronts).lines) == 2
    assert len(_axes(fronts, apart=("one",)).lines) == 1


def test_dominated_points_are_drawn_apart_and_faint() -> None:
    faint, bold = _axes([curve()]).collections
    assert faint.get_offsets().tolist() == [[0.85, 0.7]]
    assert len(bold.get_offsets()) == 4
    assert faint.get_alpha() < 1


def test_a_long_legend_stands_outside() -> None:
    for count in (6, 7):
        figure = Figure()
        draw_curves(figure, [spread_front(3, 2, f"m{k}") for k in range(count)], ())
        assert bool(figure.legends) is (count > 6)
        assert (figure.axes[0].get_legend() is None) is (count > 6)


@pytest.mark.parametrize(("front", "sides"), [(curve(), (-10, -10)), (mixed(), (10, -10))])
def test_preferences_are_written_on_the_worse_side(front: Front, sides: tuple[int, int]) -> None:
    first, second = _axes([front]).texts
    assert first.xyann == (sides[0], 0)
    assert second.xyann == (0, sides[1])
    assert first.xy == tuple(front.scores[3].tolist())
    assert second.xy == tuple(front.scores[0].tolist())
    assert first.get_text() == "α = (1, 0)"


def test_a_plane_shows_the_tasks_that_it_is_asked_for() -> None:
    axes = Figure().subplots()
    front = spread_front(4, 3)
    shown = draw_plane(axes, [front], 2, 1, [False])
    torch.testing.assert_close(
        torch.as_tensor(shown.get_offsets().data), front.scores[:, [2, 1]], check_dtype=False
    )
    assert axes.get_xlabel().startswith("task 2")
    assert axes.get_ylabel().startswith("task 1")
