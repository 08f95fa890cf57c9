"""Many tasks."""

import pytest
import torch

from asking import serving
from browser import SLIDER, fits, move, narrowed
from lorpman.explorer.figures.parallel_axes import draw_parallel_axes
from lorpman.front.front import Front
from run_copies import with_scores


def brushed_axis(front):
    """An axis, and the lines that surely, and perhaps, pass through its upper half."""
    scores = front.scores
    height = (scores - scores.amin(0)) / (scores.amax(0) - scores.amin(0)).clamp_min(1e-9)
    # A line that passes within a pixel of the brush's end may fall on either side.
    above = [set((height[:, 0] > edge).nonzero().flatten().tolist()) for edge in (0.52, 0.48)]
    assert 0 < len(above[0]) <= len(above[1]) < len(front)
    return 0, above


def test_twenty_tasks_have_parallel_axes_that_can_be_brushed(window, objects, tmp_path):
    front, root = Front.load(objects[0] / "front.json"), objects[1]
    run = with_scores(objects[0], tmp_path / "run", torch.rand(front.scores.shape).double())
    with serving([run], root) as explorer:
        view = window(explorer.url)
        view.settled()
        assert view.page.locator(SLIDER).count() == 20
        move(view, 0.62, slider=4)
        assert view.alpha()[4] == pytest.approx(0.62)
        assert sum(view.alpha()) == pytest.approx(1)
        assert view.alpha()[0] == pytest.approx(0.02, abs=1e-3)
        assert len(view.scores()) == 20
        axis, kept = brushed_axis(Front.load(run / "front.json"))
        at = view.page.evaluate(
            """(axis) => {
                const plot = document.querySelector("#front .js-plotly-plot");
                const box = plot.getBoundingClientRect(), {xaxis, yaxis} = plot._fullLayout;
                return [box.left + xaxis._offset + xaxis.d2p(axis), box.top + yaxis._offset,
                        yaxis._length];
            }""",
            axis,
        )
        view.page.mouse.move(at[0] - 8, at[1] + 2)
        view.page.mouse.down()
        view.page.mouse.move(at[0] + 8, at[1] + at[2] / 2, steps=4)
        view.page.mouse.up()
        bold = """() => [...new Set(document.querySelector("#front .js-plotly-plot").data
            .filter((trace) => trace.customdata && trace.opacity === 1)
            .flatMap((trace) => trace.customdata.map((what) => what[1])))].sort((a, b) => a - b)"""
        view.page.wait_for_function(f"({bold})().length > 0")
        # It stays while the preference moves on.
        move(view, 0.3, slider=0)
        shown = set(view.page.evaluate(bold))
        assert kept[0] <= shown <= kept[1]
        view.page.mouse.dblclick(at[0] + 30, at[1] + at[2] / 2)
        view.page.wait_for_function(f"({bold})().length === 0")
        narrowed(view)
        angle = "document.querySelector('#front .js-plotly-plot').layout.xaxis.tickangle === -90"
        view.page.wait_for_function(angle)
        assert fits(view)


def test_every_axis_goes_from_the_worst_to_the_best(opened):
    figure = draw_parallel_axes([opened])
    heights = [y for trace in figure["data"] for y in trace["y"] if y is not None]
    assert min(heights) == 0
    assert max(heights) == 1
    assert len(heights) == 2 * len(opened.front)
    gaps = [x for trace in figure["data"] for x in trace["x"]].count(None)
    assert gaps == len(opened.front)
