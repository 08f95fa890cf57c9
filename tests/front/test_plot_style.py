from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from front.fronts import curve, mixed, spread_front
from lorpman.errors import UsageError
from lorpman.front.front import Front
from lorpman.front.plot import plot_front, plot_fronts
from lorpman.front.plot_style import (
    COLOURS,
    MARKERS,
    axis_label,
    front_name,
    plain_text,
    significant,
    volume_text,
)


def test_legends_stay_inside_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr("lorpman.front.plot.save_figure", lambda figure, _: figures.append(figure))
    for m in (3, 5):
        plot_fronts(
            [spread_front(5, m, f"a method called {k}") for k in range(4)], tmp_path / "x.png"
        )
    for figure in figures:
        figure.draw_without_rendering()
        legend, page = figure.legends[0].get_window_extent(), figure.bbox
        assert legend.x0 >= page.x0
        assert legend.x1 <= page.x1


@pytest.mark.parametrize("kind", ["png", "pdf", "svg", "PNG"])
def test_the_suffix_picks_the_format(tmp_path: Path, kind: str) -> None:
    plot_front(spread_front(3, 2), tmp_path / f"front.{kind}")
    assert (tmp_path / f"front.{kind}").stat().st_size > 1000


def test_names_with_dollar_signs_are_not_formulas(tmp_path: Path) -> None:
    tasks = ("cost $x_{$", "$^$")
    odd = Front(torch.eye(2), torch.eye(2) + 1, tasks, (True, True), (0.0, 0.0), label="$_$")
    plot_front(odd, tmp_path / "front.png")
    assert (tmp_path / "front.png").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("front.xyz", r"must end in one of .*pdf, .*png"),
        ("front", "must end in one of"),
        ("nowhere/front.png", "cannot write .*there is no folder"),
    ],
)
def test_a_path_that_cannot_be_drawn_to_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plot_front(spread_front(3, 2), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_numbers_keep_their_zeros() -> None:
    assert [significant(x, 3) for x in (0.95, 0.9476, 12.0, 123.4)] == [
        "0.950",
        "0.948",
        "12.0",
        "123",
    ]


def test_labels_say_which_way_is_better() -> None:
    assert axis_label(mixed(), 0) == "age  (← lower is better)"
    assert axis_label(mixed(), 1) == "right  (higher is better →)"


def test_a_front_without_a_label_has_a_number() -> None:
    assert (front_name(curve(), 3), front_name(mixed(), 0)) == ("a", "front 1")
    assert plain_text("$x$") == r"\$x\$"


def test_a_volume_that_no_float_holds_does_not_spoil_a_picture() -> None:
    names = tuple(f"t{i}" for i in range(40))
    tiny = Front(torch.ones(1, 40), torch.full((1, 40), 1e-9), names, (True,) * 40, (0.0,) * 40)
    assert volume_text(tiny) == "hypervolume out of range"
    assert volume_text(curve()) == f"hypervolume {curve().hypervolume():#.4g}"


def test_pairs_of_colour_and_marker_repeat_late() -> None:
    pairs = {(COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]) for k in range(72)}
    assert len(pairs) == 72
