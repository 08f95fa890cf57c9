"""Pictures: every kind of front gives one, nothing overlaps the edge, errors leave no file."""

import re
from pathlib import Path

import pytest
import torch
from matplotlib.figure import Figure

from lorpman.errors import UsageError
from lorpman.front.front import Front
from lorpman.front.plot import plot_front, plot_fronts


def front(n: int, m: int, label: str = "", seed: int = 0, up: tuple[bool, ...] = ()) -> Front:
    generator = torch.Generator().manual_seed(seed)
    alphas = torch.rand(n, m, generator=generator)
    alphas /= alphas.sum(dim=1, keepdim=True)
    names = tuple(f"task {i}" for i in range(m))
    scores = 0.6 + 0.3 * alphas.double().sqrt()
    reference = tuple(0.0 if flag else 1.0 for flag in up or (True,) * m)
    return Front(alphas, scores, names, up or (True,) * m, reference, label=label)


def svg_text(path: Path) -> str:
    """The words of a picture: matplotlib keeps each as a comment above its glyphs."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("n", [1, 2, 12])
@pytest.mark.parametrize("m", [1, 2, 3, 5, 12])
def test_every_size_gives_a_picture(tmp_path: Path, n: int, m: int) -> None:
    front(n, m).plot(tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("m", [2, 3, 7])
def test_overlays_name_every_front_and_its_volume(tmp_path: Path, m: int) -> None:
    fronts = [front(9, m, name, seed) for seed, name in enumerate(("first", "second", ""))]
    plot_fronts(fronts, tmp_path / "all.svg")
    words = svg_text(tmp_path / "all.svg")
    for name in ("first  (hypervolume", "second  (hypervolume", "front 3  (hypervolume"):
        assert name in words


def test_the_title_holds_the_volume_and_its_error_where_sampled(tmp_path: Path) -> None:
    exact, sampled = front(9, 2, label="lorpman"), front(30, 13)
    plot_front(exact, tmp_path / "2.svg")
    plot_front(sampled, tmp_path / "13.svg", title="Many tasks")
    assert f"hypervolume {exact.hypervolume():#.4g}" in svg_text(tmp_path / "2.svg")
    assert "lorpman" in svg_text(tmp_path / "2.svg")
    assert "±" not in svg_text(tmp_path / "2.svg")
    assert f" ± {sampled.hypervolume().stderr:.1g}" in svg_text(tmp_path / "13.svg")
    assert "Many tasks" in svg_text(tmp_path / "13.svg")


@pytest.mark.parametrize("m", [2, 3, 4])
def test_each_task_says_which_way_is_better(tmp_path: Path, m: int) -> None:
    plot_front(front(9, m, up=(False,) + (True,) * (m - 1)), tmp_path / "front.svg")
    assert "lower is better" in svg_text(tmp_path / "front.svg")


def test_both_ends_of_a_curve_carry_their_preference(tmp_path: Path) -> None:
    alphas = torch.tensor([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])
    ends = Front(alphas, 0.5 + alphas / 2, ("a", "b"), (True, True), (0.0, 0.0))
    plot_front(ends, tmp_path / "front.svg")
    assert "α = (1, 0)" in svg_text(tmp_path / "front.svg")
    assert "α = (0, 1)" in svg_text(tmp_path / "front.svg")


def test_legends_stay_inside_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr("lorpman.front.plot.save_figure", lambda figure, _: figures.append(figure))
    for m in (3, 5):
        plot_fronts([front(5, m, f"a method called {k}") for k in range(4)], tmp_path / "x.png")
    for figure in figures:
        figure.draw_without_rendering()
        legend, page = figure.legends[0].get_window_extent(), figure.bbox
        assert legend.x0 >= page.x0
        assert legend.x1 <= page.x1


@pytest.mark.parametrize("kind", ["png", "pdf", "svg", "PNG"])
def test_the_suffix_picks_the_format(tmp_path: Path, kind: str) -> None:
    plot_front(front(3, 2), tmp_path / f"front.{kind}")
    assert (tmp_path / f"front.{kind}").stat().st_size > 1000


def test_names_with_dollar_signs_are_not_formulas(tmp_path: Path) -> None:
    tasks = ("cost $x_{$", "$^$")
    odd = Front(torch.eye(2), torch.eye(2) + 1, tasks, (True, True), (0.0, 0.0), label="$_$")
    plot_front(odd, tmp_path / "front.png")
    assert (tmp_path / "front.png").exists()


def test_no_global_state_is_touched(tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plot_front(front(3, 2), tmp_path / "front.png")
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("front.xyz", r"must end in one of .*pdf, .*png"),
        ("front", "must end in one of"),
        ("nowhere/front.png", "cannot write .*No such file"),
    ],
)
def test_a_path_that_cannot_be_drawn_to_is_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plot_front(front(3, 2), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_fronts_of_different_tasks_do_not_share_a_picture(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="same tasks"):
        plot_fronts([front(3, 2), front(3, 3)], tmp_path / "front.png")
    with pytest.raises(UsageError, match="at least one front"):
        plot_fronts([], tmp_path / "front.png")
