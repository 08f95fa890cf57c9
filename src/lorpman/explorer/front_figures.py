"""Plotly figures as plain mappings: the page's script adds the moving point and the colours.

Every trace carries ``meta["run"]``, so that a run can be hidden, and ``customdata`` with the run
and the place of each point on its front, so that a click knows what was meant.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lorpman.explorer.opened_run import Opened
from lorpman.front.front import Front, worst_and_best
from lorpman.front.plot_style import COLOURS, significant
from lorpman.front.plot_surfaces import triangles

Figure = dict[str, Any]
Trace = dict[str, Any]

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star")
_SYMBOLS_3D = ("circle", "square", "diamond", "cross", "x")
_GLYPHS = {
    "circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "triangle-down": "▼",
    "cross": "✚", "x": "✖", "star": "★",
}  # fmt: skip
# From the first task's colour to the second's, through a grey that is neither.
_BETWEEN = [[0.0, COLOURS[1]], [0.5, "#a59a95"], [1.0, COLOURS[0]]]
_FAINT = 0.28


def colour(place: int) -> str:
    """The colour of the run at ``place`` on the command line."""
    return COLOURS[place % len(COLOURS)]


def glyph(place: int, tasks: int) -> str:
    """The sign of that run's points, as a character: colours alone do not tell runs apart."""
    symbols = _SYMBOLS_3D if tasks == 3 else SYMBOLS
    return _GLYPHS[symbols[place % len(symbols)]]


def front_figure(runs: Sequence[Opened]) -> Figure:
    """All fronts: a curve for two tasks, a surface for three, parallel coordinates otherwise."""
    draw = {2: _curves, 3: _surfaces}.get(len(runs[0].front.tasks), _parallel)
    return draw(runs)


def basic_layout(**more: Any) -> dict[str, Any]:
    """What all figures share. The script sets the colours of text and lines."""
    base = {
        "margin": {"l": 62, "r": 16, "t": 14, "b": 52},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "showlegend": False,
        "hovermode": "closest",
        "uirevision": "kept",
        "clickmode": "event",
    }
    return base | more


def axis_title(front: Front, task: int) -> str:
    """A task's name, and which way is better."""
    name = front.tasks[task]
    return f"{name} ({front.direction(name).axis_words})"


def weights_text(tasks: Sequence[str], alpha: Sequence[float]) -> str:
    """A preference in words; of many tasks, those with the largest weights."""
    order = (
        sorted(range(len(tasks)), key=lambda i: -alpha[i]) if len(tasks) > 4 else range(len(tasks))
    )
    parts = [f"{tasks[i]} {alpha[i]:.0%}" for i in list(order)[:4]]
    return ", ".join(parts) + (" ..." if len(tasks) > 4 else "")


def _hover(run: Opened) -> list[str]:
    """What the pointer shows at each point of a front."""
    front = run.front
    lines = []
    for alpha, scores in zip(front.alphas.tolist(), front.scores.tolist(), strict=True):
        shown = [f"{n} {significant(s, 4)}" for n, s in zip(front.tasks, scores, strict=True)]
        more = "<br>..." if len(shown) > 6 else ""
        lines.append(
            f"<b>{run.title}</b><br>preference: {weights_text(front.tasks, alpha)}<br>"
            + "<br>".join(shown[:6])
            + more
        )
    return lines


def _points(run: Opened, chosen: Any) -> dict[str, Any]:
    """The text and the identity of the chosen points."""
    hover = _hover(run)
    places = np.flatnonzero(chosen).tolist()
    return {
        "customdata": [[run.key, place] for place in places],
        "text": [hover[place] for place in places],
        "hovertemplate": "%{text}<extra></extra>",
        "meta": {"run": run.key},
        "name": run.title,
    }


def _best(front: Front) -> Any:
    return front.non_dominated_mask().numpy()


# Two tasks.


def _curves(runs: Sequence[Opened]) -> Figure:
    traces = [trace for k, run in enumerate(runs) for trace in _plane(run, k, 0, 1, len(runs) == 1)]
    first = runs[0].front
    layout = basic_layout(
        xaxis={
            "title": {"text": axis_title(first, 0), "standoff": 10},
            "zeroline": False,
            "automargin": True,
        },
        yaxis={
            "title": {"text": axis_title(first, 1), "standoff": 10},
            "zeroline": False,
            "automargin": True,
        },
    )
    return {"data": traces, "layout": layout}


def _plane(run: Opened, k: int, x: int, y: int, alone: bool, joined: bool = True) -> list[Trace]:
    """Tasks ``x`` and ``y`` of a front: non-dominated points bold, the others faint."""
    points, best = run.front.scores.numpy()[:, [x, y]], _best(run.front)
    marker: dict[str, Any] = {"symbol": SYMBOLS[k % len(SYMBOLS)], "color": colour(k)}
    big = 12 if joined else 9
    bold, faint = dict(marker, size=big), dict(marker, size=8, opacity=_FAINT)
    if alone and joined:
        # On its own, a front shows by colour which task a point favours, as the slider does.
        weight = run.front.alphas[:, 0].numpy()
        paint = {"colorscale": _BETWEEN, "cmin": 0, "cmax": 1, "showscale": False}
        bold |= paint | {"color": weight[best].tolist()}
        faint |= paint | {"color": weight[~best].tolist()}
    traces: list[Trace] = []
    lines = "lines+markers" if joined and run.spec.method.kind == "continuous" else "markers"
    for chosen, style, mode in ((~best, faint, "markers"), (best, bold, lines)):
        order = np.argsort(points[chosen][:, 0], kind="stable")
        named = _points(run, chosen)
        for key in ("customdata", "text"):
            named[key] = [named[key][i] for i in order]
        if isinstance(style["color"], list):
            style = style | {"color": [style["color"][i] for i in order]}
        traces.append(
            {
                "type": "scatter",
                "mode": mode,
                "x": points[chosen][order, 0].tolist(),
                "y": points[chosen][order, 1].tolist(),
                "marker": style,
                "line": {"color": "#8b8f97" if alone else colour(k), "width": 1.6},
                **named,
            }
        )
    return traces


def live_curve(run: Opened, front: Front) -> Trace:
    """The same preferences on the held-out samples: the line on which the point moves."""
    order = front.alphas[:, 0].argsort()
    scores = front.scores[order]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": scores[:, 0].tolist(),
        "y": scores[:, 1].tolist(),
        "line": {"dash": "dot", "width": 1.6, "color": "#8b8f97"},
        "hoverinfo": "skip",
        "meta": {"run": run.key, "live": True},
        "name": "live",
    }


# Three tasks.


def _surfaces(runs: Sequence[Opened]) -> Figure:
    traces = [trace for k, run in enumerate(runs) for trace in _surface(run, k, len(runs) == 1)]
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


def _surface(run: Opened, k: int, alone: bool) -> list[Trace]:
    """Triangles between neighbours on the simplex of preferences, and the points on them."""
    points, weight, best = run.front.scores.numpy(), run.front.alphas.numpy(), _best(run.front)
    x, y, z = (points[:, i].tolist() for i in range(3))
    traces: list[Trace] = []
    faces = triangles(weight[:, :2])
    if len(faces) and run.spec.method.kind == "continuous":
        first, second, third = (faces[:, corner].tolist() for corner in range(3))
        mesh: Trace = {
            "type": "mesh3d",
            "x": x,
            "y": y,
            "z": z,
            "i": first,
            "j": second,
            "k": third,
        }
        paint = (
            {"intensity": weight[:, 0].tolist(), "colorscale": "Cividis", "showscale": False}
            if alone
            else {"color": colour(k)}
        )
        more = {"opacity": 0.4, "hoverinfo": "skip", "meta": {"run": run.key}}
        traces.append(mesh | paint | more)
    for chosen, size, opacity in ((~best, 4, _FAINT), (best, 6, 1.0)):
        symbol = _SYMBOLS_3D[k % len(_SYMBOLS_3D)]
        traces.append(
            {
                "type": "scatter3d",
                "mode": "markers",
                **{axis: points[chosen, i].tolist() for i, axis in enumerate("xyz")},
                "marker": {
                    "size": size, "opacity": opacity, "color": colour(k), "symbol": symbol,
                },
                **_points(run, chosen),
            }
        )  # fmt: skip
    return traces


def projections(runs: Sequence[Opened]) -> Figure:
    """What the surface of three tasks looks like along each axis."""
    front = runs[0].front
    traces: list[Trace] = []
    side_by_side = {"rows": 1, "columns": 3, "pattern": "independent", "xgap": 0.32, "ygap": 0.4}
    layout = basic_layout(grid=side_by_side)
    for place, (x, y) in enumerate(((0, 1), (0, 2), (1, 2))):
        tail = "" if place == 0 else str(place + 1)
        for k, run in enumerate(runs):
            traces += [
                trace | {"xaxis": f"x{tail}", "yaxis": f"y{tail}"}
                for trace in _plane(run, k, x, y, len(runs) == 1, joined=False)
            ]
        for letter, task in (("x", x), ("y", y)):
            axis = {"title": {"text": axis_title(front, task), "font": {"size": 12}, "standoff": 8}}
            layout[f"{letter}axis{tail}"] = axis | {"zeroline": False, "automargin": True}
    return {"data": traces, "layout": layout}


# More tasks, or one.


def limits(runs: Sequence[Opened]) -> tuple[list[float], list[float]]:
    """Each task's worst and best score over all fronts: the ends of its axis."""
    fronts = [run.front for run in runs]
    worst, best = (end.numpy() for end in worst_and_best(fronts))
    best = np.where(best == worst, worst + 1e-9 * fronts[0].signs.numpy(), best)
    return worst.tolist(), best.tolist()


def _parallel(runs: Sequence[Opened]) -> Figure:
    """One upright axis per task, each from its worst score, below, to its best, above."""
    worst, best = (np.array(end) for end in limits(runs))
    count = len(worst)
    traces: list[Trace] = []
    for k, run in enumerate(runs):
        height = (run.front.scores.numpy() - worst) / (best - worst)
        bold = _best(run.front)
        for chosen, width, opacity in ((~bold, 0.8, _FAINT), (bold, 1.4, 0.75)):
            traces.append(_lines(run, k, height, chosen, width, opacity))
    front = runs[0].front
    ends = [f"{significant(float(w), 3)} to {significant(float(b), 3)}" for w, b in zip(worst, best,
            strict=True)]  # fmt: skip
    layout = basic_layout(
        xaxis={
            "tickvals": list(range(count)),
            "ticktext": [short(name) for name in front.tasks],
            "tickangle": -60 if count > 6 else 0,
            "range": [-0.4, count - 0.6],
            "automargin": True,
            "zeroline": False,
            "fixedrange": True,
        },
        yaxis={
            "title": {"text": "worst → best of each task"},
            "range": [-0.06, 1.06],
            "tickvals": [],
            "zeroline": False,
            "showgrid": False,
            "fixedrange": True,
        },
        dragmode="select",
        selectdirection="any",
        meta={"ends": ends},
    )
    return {"data": traces, "layout": layout}


def _lines(run: Opened, k: int, height: Any, chosen: Any, width: float, opacity: float) -> Trace:
    """The chosen points of a front as lines across all axes, in one trace with gaps."""
    count = height.shape[1]
    places = np.flatnonzero(chosen).tolist()
    hover = _hover(run)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [x for _ in places for x in (*range(count), None)],
        "y": [y for place in places for y in (*height[place].tolist(), None)],
        "customdata": [[run.key, place] for place in places for _ in range(count + 1)],
        "text": [hover[place] for place in places for _ in range(count + 1)],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": colour(k), "width": width},
        "marker": {"color": colour(k), "size": 5, "symbol": SYMBOLS[k % len(SYMBOLS)]},
        "opacity": opacity,
        "meta": {"run": run.key},
        "name": run.title,
        "connectgaps": False,
    }


def short(name: str, most: int = 18) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
