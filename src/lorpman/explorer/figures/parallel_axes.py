"""Fronts of more than three tasks, or of one: a line per network across one axis per task."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lorpman.explorer.figures.style import (
    FAINT,
    SYMBOLS,
    Figure,
    Trace,
    basic_layout,
    colour,
    hover_texts,
    is_on_front,
    score_limits,
    shortened,
)
from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.plot_style import significant


def draw_parallel_axes(runs: Sequence[OpenedRun]) -> Figure:
    """One upright axis per task, each from its worst score, below, to its best, above.

    Args:
        runs: The runs on the page, with more than three tasks, or one.
    """
    worst, best = (np.array(end) for end in score_limits([run.front for run in runs]))
    traces: list[Trace] = []
    for place, run in enumerate(runs):
        heights = (run.front.scores.numpy() - worst) / (best - worst)
        bold = is_on_front(run.front)
        for chosen, width, opacity in ((~bold, 0.8, FAINT), (bold, 1.4, 0.75)):
            line = {"color": colour(place), "width": width}
            marker = {"color": colour(place), "size": 5, "symbol": SYMBOLS[place % len(SYMBOLS)]}
            look = {"line": line, "marker": marker, "opacity": opacity}
            traces.append(_lines(run, heights, np.flatnonzero(chosen).tolist()) | look)
    ends = [
        f"{significant(float(low), 3)} to {significant(float(high), 3)}"
        for low, high in zip(worst, best, strict=True)
    ]
    return {"data": traces, "layout": _layout(runs[0].front.tasks, ends)}


def _lines(run: OpenedRun, heights: Any, places: Sequence[int]) -> Trace:
    """Points of a front as lines across all axes, in one trace with gaps.

    One trace per line would be hundreds, with which plotly is slow.
    """
    count = heights.shape[1]
    hover = hover_texts(run)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [x for _ in places for x in (*range(count), None)],
        "y": [y for place in places for y in (*heights[place].tolist(), None)],
        # For every corner of a line and for the gap behind it: plotly finds details by their place.
        "customdata": [[run.key, place] for place in places for _ in range(count + 1)],
        "text": [hover[place] for place in places for _ in range(count + 1)],
        "hovertemplate": "%{text}<extra></extra>",
        "meta": {"run": run.key},
        "name": run.title,
        "connectgaps": False,
    }


def _layout(tasks: Sequence[str], ends: list[str]) -> dict[str, Any]:
    count = len(tasks)
    fixed = {"zeroline": False, "fixedrange": True}
    return basic_layout(
        xaxis={
            "tickvals": list(range(count)),
            "ticktext": [shortened(name) for name in tasks],
            "tickangle": -60 if count > 6 else 0,
            "range": [-0.4, count - 0.6],
            "automargin": True,
            **fixed,
        },
        yaxis={
            "title": {"text": "worst → best of each task"},
            "range": [-0.06, 1.06],
            "tickvals": [],
            "showgrid": False,
            **fixed,
        },
        # A drag over an axis keeps the lines that pass there.
        dragmode="select",
        selectdirection="any",
        meta={"ends": ends},
    )
