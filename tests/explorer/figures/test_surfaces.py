"""Three tasks."""

import plotly.graph_objects as go
import pytest
import torch

from asking import serving
from browser import click_point, fits, move, narrowed
from lorpman.explorer.figures.surfaces import draw_projections
from lorpman.explorer.opened_run import open_runs
from lorpman.front.front import Front
from run_copies import with_scores


def curved(front):
    """Scores on a curved surface: so short a training leaves all of them equal."""
    high = 0.6 + 0.3 * front.alphas.double().sqrt()
    return torch.where(torch.tensor(front.maximise), high, 1 - high)


def test_three_tasks_have_a_surface_a_triangle_and_linked_sliders(window, faces, tmp_path):
    front, root = Front.load(faces[0] / "front.json"), faces[1]
    run = with_scores(faces[0], tmp_path / "run", curved(front))
    with serving([run], root) as explorer:
        view = window(explorer.url)
        view.settled()
        kinds = "() => document.querySelector('#front .js-plotly-plot').data.map((t) => t.type)"
        assert {"mesh3d", "scatter3d"} <= set(view.page.evaluate(kinds))
        move(view, 0.5, slider=1)
        assert view.alpha() == pytest.approx([0.25, 0.5, 0.25], abs=1e-3)
        box = view.page.locator("#ternary svg").bounding_box()
        view.page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.3)
        view.page.wait_for_function("location.search.split(',').pop() > 0.5")
        view.settled()
        assert sum(view.alpha()) == pytest.approx(1)
        flat = "document.querySelectorAll('#flat .subplot').length"
        assert view.page.evaluate(flat) == 3
        for task in (2, 0):
            corner = int(front.alphas[:, task].argmax())
            click_point(view, "run", corner, ("alpha=1,0,0", "", "alpha=0,0,1")[task])
        narrowed(view)
        rows = "document.querySelector('#flat .js-plotly-plot')._fullLayout.grid.rows === 3"
        view.page.wait_for_function(rows)
        assert fits(view)


def test_each_pair_of_tasks_has_a_projection(faces):
    (run,) = open_runs([faces[0]], None)
    figure = draw_projections([run])
    assert len(go.Figure(figure).data) == 6
    titles = {
        (
            figure["layout"][f"xaxis{n}"]["title"]["text"],
            figure["layout"][f"yaxis{n}"]["title"]["text"],
        )
        for n in ("", 2, 3)
    }
    assert len(titles) == 3
