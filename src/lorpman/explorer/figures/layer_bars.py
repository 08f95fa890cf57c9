"""What a LORPMAN run has learned in every layer, as bars or shades."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lorpman.explorer.figures.style import LEGEND, Figure, Trace, basic_layout, colour, shortened
from lorpman.explorer.learned_layers import LayerDeltas

# Bars beside one another; with more of them, layers could not be told apart.
_MOST_BARS = 3
# Beyond, names would overlap; plotly then leaves some out.
_MOST_NAMES = 24


def layer_names(layers: Sequence[LayerDeltas]) -> list[str]:
    """The names of layers, without the beginning that all of them share.

    Args:
        layers: The layers.

    >>> deltas = [LayerDeltas(f"bottom.{i}.weight", [], []) for i in (0, 3)]
    >>> layer_names(deltas)
    ['0', '3']
    """
    parts = [layer.name.removesuffix(".weight").split(".") for layer in layers]
    while len(parts) > 1 and len({part[0] for part in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [part[1:] for part in parts]
    return [".".join(part) for part in parts]


def draw_correlations(layers: Sequence[LayerDeltas], tasks: Sequence[str]) -> Figure:
    """How alike the low-rank matrices of each layer are: pairs of tasks, or all pairs' mean.

    Args:
        layers: What each layer learned.
        tasks: The names of the tasks.
    """
    names = layer_names(layers)
    pairs = [(i, j) for i in range(len(tasks)) for j in range(i + 1, len(tasks))]
    if len(pairs) <= _MOST_BARS:
        traces = [
            _bars(names, [layer.correlation[i][j] for layer in layers], colour(k),
                  f"{tasks[i]} and {tasks[j]}")
            for k, (i, j) in enumerate(pairs)
        ]  # fmt: skip
        ends = [-1, 1]
    else:
        # Of sizes: opposite signs must not cancel.
        means = [
            float(np.mean([abs(layer.correlation[i][j]) for i, j in pairs])) for layer in layers
        ]
        traces = [_bars(names, means, colour(0), f"mean size over {len(pairs)} pairs of tasks")]
        ends = [0, 1]
    layout = _layout("correlation")
    layout["yaxis"] |= {"range": ends}
    return {"data": traces, "layout": layout}


def draw_energies(layers: Sequence[LayerDeltas], tasks: Sequence[str]) -> Figure:
    """How large every task's low-rank matrix is, next to the main weight of its layer.

    Args:
        layers: What each layer learned.
        tasks: The names of the tasks; of many, a heat map is drawn.
    """
    names = layer_names(layers)
    if len(tasks) <= _MOST_BARS:
        traces = [
            _bars(names, [layer.energy[i] for layer in layers], colour(i), task)
            for i, task in enumerate(tasks)
        ]
        return {"data": traces, "layout": _layout("energy")}
    shades = {
        "type": "heatmap",
        "x": names,
        "y": [shortened(task) for task in tasks],
        "z": [[layer.energy[i] for layer in layers] for i in range(len(tasks))],
        "colorscale": "Cividis",
        "hovertemplate": "%{y}, %{x}<br>energy %{z:.3g}<extra></extra>",
        "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": "energy"}},
    }
    layout = _layout("") | {"showlegend": False}
    layout["yaxis"] |= {"autorange": "reversed", "zeroline": False}
    if len(tasks) <= _MOST_NAMES:
        layout["yaxis"] |= {"dtick": 1, "tickfont": {"size": 9}}
    return {"data": [shades], "layout": layout}


def _bars(x: list[str], y: list[float], paint: str, name: str) -> Trace:
    hover = f"{name}<br>%{{x}}: %{{y:.3g}}<extra></extra>"
    return {"type": "bar", "x": x, "y": y, "name": name, "marker": {"color": paint},
            "hovertemplate": hover}  # fmt: skip


def _layout(title: str) -> dict[str, Any]:
    return basic_layout(
        xaxis={"automargin": True, "type": "category", "title": {"text": "layer", "standoff": 14}},
        yaxis={"title": {"text": title}, "automargin": True, "zeroline": True},
        legend=LEGEND,
        margin={"l": 56, "r": 12, "t": 36, "b": 70},
        showlegend=True,
        bargap=0.35,
    )
