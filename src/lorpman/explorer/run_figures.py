"""Figures about the inside of a run: training, layers, parameters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lorpman.explorer.front_figures import Figure, Trace, basic_layout, colour, short
from lorpman.explorer.learned_layers import Layer
from lorpman.explorer.opened_run import Opened

# Above the plot, growing upwards where it needs several lines.
_LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}


def losses(run: Opened) -> Figure:
    """The mean loss of every epoch; beyond six tasks, their mean and range."""
    notes = [note for note in run.notes if "losses" in note]
    epochs = [note["number"] for note in notes]
    tasks = run.front.tasks
    table = np.array([[note["losses"].get(name, np.nan) for name in tasks] for note in notes])
    if len(tasks) <= 6:
        traces = [
            _line(epochs, table[:, i].tolist(), colour(i), name) for i, name in enumerate(tasks)
        ]
    else:
        band = {"mode": "lines", "hoverinfo": "skip", "showlegend": False, "line": {"width": 0}}
        traces = [
            _line(epochs, table.max(1).tolist(), colour(0), "highest") | band,
            _line(epochs, table.min(1).tolist(), colour(0), "lowest")
            | band
            | {"fill": "tonexty", "fillcolor": "rgba(0,114,178,0.18)"},
            _line(epochs, table.mean(1).tolist(), colour(0), "mean of all tasks"),
        ]
    layout = _curve_layout(run, "training loss")
    return {"data": traces, "layout": layout | {"showlegend": True}}


def volumes(run: Opened) -> Figure | None:
    """The validation hypervolume of every epoch, where it was watched."""
    notes = [note for note in run.notes if note.get("hypervolume") is not None]
    if not notes:
        return None
    epochs = [note["number"] for note in notes]
    values = [note["hypervolume"] for note in notes]
    line = _line(epochs, values, colour(2), "hypervolume")
    return {"data": [line], "layout": _curve_layout(run, "validation hypervolume")}


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


def _curve_layout(run: Opened, title: str) -> dict[str, Any]:
    # Of few epochs, plotly would show halves.
    whole = {"dtick": 1} if len(run.notes) <= 8 else {}
    layout = basic_layout(
        xaxis={"title": {"text": "epoch"}, "zeroline": False, "rangemode": "tozero"} | whole,
        yaxis={"title": {"text": title}, "zeroline": False, "automargin": True},
        legend=_LEGEND,
        margin={"l": 56, "r": 12, "t": 34, "b": 46},
    )
    frozen = [note["number"] for note in run.notes if note.get("frozen")]
    if frozen:
        # The main network stops before its first frozen epoch.
        where = frozen[0] - 0.5
        layout["shapes"] = [
            {"type": "line", "x0": where, "x1": where, "yref": "paper", "y0": 0, "y1": 1,
             "line": {"dash": "dash", "width": 1.4, "color": "#8b8f97"}}
        ]  # fmt: skip
        layout["annotations"] = [
            {"x": where, "yref": "paper", "y": 0.5, "text": "main network frozen ",
             "showarrow": False, "xanchor": "right", "font": {"size": 11}}
        ]  # fmt: skip
    return layout


def layer_names(found: Sequence[Layer]) -> list[str]:
    """Names without what all of them share.

    >>> layer_names([Layer("bottom.0.weight", [], []), Layer("bottom.3.weight", [], [])])
    ['0', '3']
    """
    parts = [layer.name.removesuffix(".weight").split(".") for layer in found]
    while len(parts) > 1 and len({part[0] for part in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [part[1:] for part in parts]
    return [".".join(part) for part in parts]


def correlations(found: Sequence[Layer], tasks: Sequence[str]) -> Figure:
    """How alike the low-rank matrices of each layer are: pairs of tasks, or all pairs' mean."""
    names = layer_names(found)
    pairs = [(i, j) for i in range(len(tasks)) for j in range(i + 1, len(tasks))]
    if len(pairs) <= 3:
        traces = [
            _bars(names, [layer.correlation[i][j] for layer in found], colour(k),
                  f"{tasks[i]} and {tasks[j]}")
            for k, (i, j) in enumerate(pairs)
        ]  # fmt: skip
    else:
        mean = [float(np.mean([abs(layer.correlation[i][j]) for i, j in pairs])) for layer in found]
        traces = [_bars(names, mean, colour(0), f"mean size over {len(pairs)} pairs of tasks")]
    layout = _bar_layout("correlation")
    layout["yaxis"] |= {"range": [-1, 1] if len(pairs) <= 3 else [0, 1]}
    return {"data": traces, "layout": layout}


def energies(found: Sequence[Layer], tasks: Sequence[str]) -> Figure:
    """How large every task's low-rank matrix is, next to the main weight of its layer."""
    names = layer_names(found)
    if len(tasks) <= 3:
        traces = [
            _bars(names, [layer.energy[i] for layer in found], colour(i), task)
            for i, task in enumerate(tasks)
        ]
        return {"data": traces, "layout": _bar_layout("energy")}
    heat = {
        "type": "heatmap",
        "x": names,
        "y": [short(task) for task in tasks],
        "z": [[layer.energy[i] for layer in found] for i in range(len(tasks))],
        "colorscale": "Cividis",
        "hovertemplate": "%{y}, %{x}<br>energy %{z:.3g}<extra></extra>",
        "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": "energy"}},
    }
    layout = _bar_layout("") | {"showlegend": False}
    layout["yaxis"] |= {"autorange": "reversed", "zeroline": False}
    if len(tasks) <= 24:
        layout["yaxis"] |= {"dtick": 1, "tickfont": {"size": 9}}
    return {"data": [heat], "layout": layout}


def _bars(x: list[str], y: list[float], paint: str, name: str) -> Trace:
    hover = f"{name}<br>%{{x}}: %{{y:.3g}}<extra></extra>"
    return {"type": "bar", "x": x, "y": y, "name": name, "marker": {"color": paint},
            "hovertemplate": hover}  # fmt: skip


def _bar_layout(title: str) -> dict[str, Any]:
    return basic_layout(
        xaxis={"automargin": True, "type": "category", "title": {"text": "layer", "standoff": 14}},
        yaxis={"title": {"text": title}, "automargin": True, "zeroline": True},
        legend=_LEGEND,
        margin={"l": 56, "r": 12, "t": 36, "b": 70},
        showlegend=True,
        bargap=0.35,
    )


def parameter_counts(counts: Sequence[tuple[str, int]]) -> Figure:
    """How many numbers each way of getting there learns."""
    names, values = [name for name, _ in counts], [value for _, value in counts]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": values,
        "text": [f"{value:,}" for value in values],
        "textposition": "auto",
        "marker": {"color": ["#8b8f97", *(colour(k) for k in range(len(names) - 2)), "#8b8f97"]},
        "hovertemplate": "%{y}: %{x:,}<extra></extra>",
    }
    layout = basic_layout(
        xaxis={"title": {"text": "parameters"}, "zeroline": False},
        yaxis={"automargin": True, "autorange": "reversed"},
        margin={"l": 20, "r": 16, "t": 10, "b": 46},
        bargap=0.4,
    )
    return {"data": [bars], "layout": layout}
