"""Every kind of front as a figure."""

import plotly.graph_objects as go

from lorpman.explorer.figures.front_figure import front_figure
from lorpman.explorer.opened_run import open_runs


def test_figures_are_valid_and_hold_every_point_once(opened, faces, objects):
    kinds = []
    for run in (opened, *open_runs([faces[0]], None), *open_runs([objects[0]], None)):
        figure = front_figure([run])
        go.Figure(figure)
        points = [tuple(what) for trace in figure["data"] for what in trace.get("customdata", [])]
        assert set(points) == {(run.key, place) for place in range(len(run.front))}
        kinds.append(figure["data"][-1]["type"] + figure["data"][-1]["mode"])
    assert kinds == ["scatterlines+markers", "scatter3dmarkers", "scatterlines+markers"]


def test_a_discrete_method_is_not_joined(rivals):
    (run,) = open_runs([rivals["pmtl"]], None)
    assert {trace["mode"] for trace in front_figure([run])["data"]} == {"markers"}
