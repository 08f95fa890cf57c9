"""Pictures show what the records hold, and nothing that they do not."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from lorpman.lab.reproduce import figures
from lorpman.lab.reproduce.results_page import read_outcome

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture
def drawn(monkeypatch):
    """The figure that was saved last."""
    saved: list[Figure] = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: saved.append(figure))
    return saved


def _draw(name, drawn):
    outcome = read_outcome(name, RESULTS)
    outcome.reproduction.draw(outcome, Path("unused.png"))
    return outcome, drawn[-1]


def test_every_point_of_every_front_is_drawn(drawn):
    outcome, figure = _draw("multimnist-figure", drawn)
    whole = figure.axes[0]
    points = sum(len(collection.get_offsets()) for collection in whole.collections)
    assert points == sum(len(record.front) for record in outcome.records)
    labels = figure.legends[0].get_texts()
    assert {text.get_text() for text in labels} == {line.line.label for line in outcome.lines}


def test_losses_have_a_point_for_each_epoch(drawn):
    outcome, figure = _draw("cifar100-loss-figure", drawn)
    lines = figure.axes[0].get_lines()
    assert len(lines) == len(outcome.lines)
    for line, measured in zip(lines, outcome.lines, strict=True):
        assert len(line.get_ydata()) == measured.records[0].settings["epochs"]
        assert line.get_ydata()[-1] == pytest.approx(measured.values("loss")[0], rel=1e-5)


def test_numbers_share_an_axis_with_the_papers_only_where_that_is_fair(drawn):
    fair, figure = _draw("multimnist-table", drawn)
    assert fair.comparable
    assert len(figure.axes) == 1
    unfair, figure = _draw("census-table", drawn)
    assert not unfair.comparable
    assert len(figure.axes) == 2


def test_an_ablation_leaves_out_lines_without_a_number(drawn):
    outcome, figure = _draw("ablation-rank", drawn)
    ours, paper = ([tick.get_text() for tick in axes.get_xticklabels()] for axes in figure.axes)
    assert ours == [line.line.label for line in outcome.made]
    assert paper == [f"rank {rank}" for rank in (4, 8, 16, 32, 64, 128)]


def test_noise_is_told_in_the_title(noise):
    assert figures._title(noise[1]) == "cityscapes, GENERATED DATA, no quality claim"
