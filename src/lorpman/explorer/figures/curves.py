"""Fronts of two tasks: curves in a plane."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lorpman.explorer.figures.style import (
    FAINT,
    GREY,
    SYMBOLS,
    Figure,
    Trace,
    axis_title,
    basic_layout,
    colour,
    is_on_front,
    point_details,
)
from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.front import Front
from lorpman.front.plot_style import COLOURS

# From the first task's colour to the second's, through a grey that is neither.
_BETWEEN = [[0.0, COLOURS[1]], [0.5, "#a59a95"], [1.0, COLOURS[0]]]


def draw_curves(runs: Sequence[OpenedRun]) -> Figure:
    """The first task's score to the right, the second's upwards.

    Args:
        runs: The runs on the page, with two tasks.
    """
    alone = len(runs) == 1
    traces = [
        trace for place, run in enumerate(runs) for trace in plane_traces(run, place, 0, 1, alone)
    ]
    titles = [axis_title(runs[0].front, task) for task in (0, 1)]
    x, y = (
        {"title": {"text": title, "standoff": 10}, "zeroline": False, "automargin": True}
        for title in titles
    )
    return {"data": traces, "layout": basic_layout(xaxis=x, yaxis=y)}


def plane_traces(
    run: OpenedRun, place: int, x: int, y: int, alone: bool, joined: bool = True
) -> list[Trace]:
    """Two tasks of a front: the points that none dominates bold, the others faint.

    Args:
        run: The run.
        place: Its place among all runs, which gives colour and sign.
        x: The task whose score goes to the right.
        y: The task whose score goes upwards.
        alone: Whether no other run is drawn.
        joined: Whether the bold points of a continuous method are joined by a line.
    """
    points, bold = run.front.scores.numpy()[:, [x, y]], is_on_front(run.front)
    # There is nothing between the solutions of a discrete method, so they are never joined.
    lines = joined and run.origin.kind == "continuous"
    traces: list[Trace] = []
    # The bold ones last, on top of the others.
    for is_bold in (False, True):
        # From left to right, or the line would run to and fro.
        places = np.flatnonzero(bold == is_bold)
        places = places[np.argsort(points[places, 0], kind="stable")]
        size = (12 if joined else 9) if is_bold else 8
        marker: dict[str, Any] = {"symbol": SYMBOLS[place % len(SYMBOLS)], "color": colour(place)}
        marker |= {"size": size} | ({} if is_bold else {"opacity": FAINT})
        if alone and joined:
            marker |= _paint_by_preference(run.front, places)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers" if lines and is_bold else "markers",
                "x": points[places, 0].tolist(),
                "y": points[places, 1].tolist(),
                "marker": marker,
                "line": {"color": GREY if alone else colour(place), "width": 1.6},
                **point_details(run, places.tolist()),
            }
        )
    return traces


def _paint_by_preference(front: Front, places: Any) -> dict[str, Any]:
    """Colours that say which task a point favours, as the slider's ends do."""
    return {
        "colorscale": _BETWEEN,
        "cmin": 0,
        "cmax": 1,
        "showscale": False,
        "color": front.alphas[:, 0].numpy()[places].tolist(),
    }


def live_curve(run: OpenedRun, front: Front) -> Trace:
    """The line on which the moving point moves.

    Args:
        run: The run.
        front: Its preferences, scored on the samples that the moving point is scored on.
    """
    order = front.alphas[:, 0].argsort()
    scores = front.scores[order]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": scores[:, 0].tolist(),
        "y": scores[:, 1].tolist(),
        "line": {"dash": "dot", "width": 1.6, "color": GREY},
        "hoverinfo": "skip",
        "meta": {"run": run.key, "live": True},
        "name": "live",
    }
