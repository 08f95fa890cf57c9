"""Fronts of three tasks: surfaces in space, and what they look like along each axis."""

from collections.abc import Sequence

from lorpman.explorer.figures.curves import plane_traces
from lorpman.explorer.figures.style import (
    FAINT,
    SYMBOLS_3D,
    Figure,
    Trace,
    axis_title,
    basic_layout,
    colour,
    is_on_front,
    point_details,
)
from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.plot_surfaces import triangles


def draw_surfaces(runs: Sequence[OpenedRun]) -> Figure:
    """One axis per task; the page lets people turn it.

    Args:
        runs: The runs on the page, with three tasks.
    """
    alone = len(runs) == 1
    traces: list[Trace] = []
    for place, run in enumerate(runs):
        traces += [*_surface(run, place, alone), *_points(run, place)]
    front = runs[0].front
    axes = {
        f"{axis}axis": {"title": {"text": front.tasks[i]}, "nticks": 5}
        for i, axis in enumerate("xyz")
    }
    # Far enough for the names of the axes; a little below the middle, where they stand.
    camera = {"eye": {"x": 1.55, "y": 1.55, "z": 0.85}, "center": {"x": 0, "y": 0, "z": -0.12}}
    scene = {**axes, "camera": camera, "dragmode": "orbit"}
    layout = basic_layout(scene=scene, margin={"l": 0, "r": 0, "t": 0, "b": 0})
    return {"data": traces, "layout": layout}


def _surface(run: OpenedRun, place: int, alone: bool) -> list[Trace]:
    """Triangles between neighbours on the simplex of preferences; none for separate networks."""
    points, weight = run.front.scores.numpy(), run.front.alphas.numpy()
    # Neighbours by preference, as in front/plot_surfaces.py; two of three weights tell the third.
    faces = triangles(weight[:, :2])
    if not len(faces) or run.origin.kind != "continuous":
        return []
    mesh: Trace = {"type": "mesh3d"}
    mesh |= {axis: points[:, i].tolist() for i, axis in enumerate("xyz")}
    mesh |= {corner: faces[:, i].tolist() for i, corner in enumerate("ijk")}
    if alone:
        mesh |= {"intensity": weight[:, 0].tolist(), "colorscale": "Cividis", "showscale": False}
    else:
        mesh |= {"color": colour(place)}
    return [mesh | {"opacity": 0.4, "hoverinfo": "skip", "meta": {"run": run.key}}]


def _points(run: OpenedRun, place: int) -> list[Trace]:
    """The points of a front: those that none dominates large, the others small and faint."""
    points, bold = run.front.scores.numpy(), is_on_front(run.front)
    traces: list[Trace] = []
    for chosen, size, opacity in ((~bold, 4, FAINT), (bold, 6, 1.0)):
        symbol = SYMBOLS_3D[place % len(SYMBOLS_3D)]
        traces.append(
            {
                "type": "scatter3d",
                "mode": "markers",
                **{axis: points[chosen, i].tolist() for i, axis in enumerate("xyz")},
                "marker": {
                    "size": size, "opacity": opacity, "color": colour(place), "symbol": symbol,
                },
                **point_details(run, chosen.nonzero()[0].tolist()),
            }
        )  # fmt: skip
    return traces


def draw_projections(runs: Sequence[OpenedRun]) -> Figure:
    """What the surface of three tasks looks like along each axis, side by side.

    Args:
        runs: The runs on the page, with three tasks.
    """
    front = runs[0].front
    traces: list[Trace] = []
    side_by_side = {"rows": 1, "columns": 3, "pattern": "independent", "xgap": 0.32, "ygap": 0.4}
    layout = basic_layout(grid=side_by_side)
    for panel, (x, y) in enumerate(((0, 1), (0, 2), (1, 2))):
        # Plotly counts axes from 1, and the first has no number: xaxis, xaxis2, xaxis3.
        tail = "" if panel == 0 else str(panel + 1)
        for place, run in enumerate(runs):
            traces += [
                trace | {"xaxis": f"x{tail}", "yaxis": f"y{tail}"}
                for trace in plane_traces(run, place, x, y, len(runs) == 1, joined=False)
            ]
        for letter, task in (("x", x), ("y", y)):
            axis = {"title": {"text": axis_title(front, task), "font": {"size": 12}, "standoff": 8}}
            layout[f"{letter}axis{tail}"] = axis | {"zeroline": False, "automargin": True}
    return {"data": traces, "layout": layout}
