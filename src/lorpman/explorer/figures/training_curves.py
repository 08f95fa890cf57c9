"""How a run's training went, epoch by epoch."""

from typing import Any

import numpy as np

from lorpman.explorer.figures.style import GREY, LEGEND, Figure, Trace, basic_layout, colour
from lorpman.explorer.opened_run import OpenedRun

# With more tasks, lines would hide one another.
_MOST_LINES = 6


def draw_losses(run: OpenedRun) -> Figure:
    """The mean loss of every epoch; beyond six tasks, their mean and range.

    Args:
        run: A run whose epochs hold losses.
    """
    noted = [epoch for epoch in run.epochs if "losses" in epoch]
    numbers = [epoch["number"] for epoch in noted]
    tasks = run.front.tasks
    table = np.array([[epoch["losses"].get(name, np.nan) for name in tasks] for epoch in noted])
    if len(tasks) <= _MOST_LINES:
        traces = [
            _line(numbers, table[:, i].tolist(), colour(i), name) for i, name in enumerate(tasks)
        ]
    else:
        band = {"mode": "lines", "hoverinfo": "skip", "showlegend": False, "line": {"width": 0}}
        filled = {"fill": "tonexty", "fillcolor": "rgba(0,114,178,0.18)"}
        traces = [
            # The upper edge first: "tonexty" fills down to the trace before.
            _line(numbers, table.max(1).tolist(), colour(0), "highest") | band,
            _line(numbers, table.min(1).tolist(), colour(0), "lowest") | band | filled,
            _line(numbers, table.mean(1).tolist(), colour(0), "mean of all tasks"),
        ]
    return {"data": traces, "layout": _layout(run, "training loss") | {"showlegend": True}}


def draw_hypervolumes(run: OpenedRun) -> Figure | None:
    """The validation hypervolume of every epoch; None where it was not watched.

    Args:
        run: The run.
    """
    noted = [epoch for epoch in run.epochs if epoch.get("hypervolume") is not None]
    if not noted:
        return None
    numbers = [epoch["number"] for epoch in noted]
    volumes = [epoch["hypervolume"] for epoch in noted]
    line = _line(numbers, volumes, colour(2), "hypervolume")
    return {"data": [line], "layout": _layout(run, "validation hypervolume")}


def _line(x: list[int], y: list[float], paint: str, name: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": y,
        "name": name,
        "line": {"color": paint, "width": 2},
        "marker": {"size": 5},
        "hovertemplate": f"{name}<br>epoch %{{x}}: %{{y:.4g}}<extra></extra>",
    }


def _layout(run: OpenedRun, title: str) -> dict[str, Any]:
    """Epochs to the right; a dashed line where the main network was frozen."""
    # Of few epochs, plotly would show halves.
    whole = {"dtick": 1} if len(run.epochs) <= 8 else {}
    layout = basic_layout(
        xaxis={"title": {"text": "epoch"}, "zeroline": False, "rangemode": "tozero"} | whole,
        yaxis={"title": {"text": title}, "zeroline": False, "automargin": True},
        legend=LEGEND,
        margin={"l": 56, "r": 12, "t": 34, "b": 46},
    )
    frozen = [epoch["number"] for epoch in run.epochs if epoch.get("frozen")]
    if frozen:
        # The main network stops before its first frozen epoch.
        where = frozen[0] - 0.5
        layout["shapes"] = [
            {"type": "line", "x0": where, "x1": where, "yref": "paper", "y0": 0, "y1": 1,
             "line": {"dash": "dash", "width": 1.4, "color": GREY}}
        ]  # fmt: skip
        layout["annotations"] = [
            {"x": where, "yref": "paper", "y": 0.5, "text": "main network frozen ",
             "showarrow": False, "xanchor": "right", "font": {"size": 11}}
        ]  # fmt: skip
    return layout
