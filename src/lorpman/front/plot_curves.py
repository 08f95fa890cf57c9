"""A front of two tasks as a curve, and two tasks of any front as a plane."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lorpman.front.front import Front
from lorpman.front.plot_style import (
    COLOUR_MAP,
    COLOURS,
    MARKERS,
    axis_label,
    draw_legend,
    front_name,
    plain_text,
    volume_text,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEGEND_INSIDE = 6  # a longer one would hide points


def draw_curves(figure: "Figure", fronts: Sequence[Front], apart: Collection[str]) -> None:
    """Draw fronts of two tasks, each a curve.

    Args:
        figure: An empty figure.
        fronts: Fronts of the same two tasks.
        apart: Labels of those whose points are not joined.
    """
    axes = figure.subplots()
    shown = draw_plane(axes, fronts, 0, 1, [front.label not in apart for front in fronts])
    if len(fronts) == 1:
        _label_corners(axes, fronts[0])
        bar = figure.colorbar(shown, ax=axes, pad=0.02)
        bar.set_label(f"preference for {plain_text(fronts[0].tasks[0])}")
    elif len(fronts) > _LEGEND_INSIDE:
        figure.set_figheight(figure.get_figheight() + 0.2 * len(fronts))
        draw_legend(figure, *axes.get_legend_handles_labels())
    else:
        axes.legend(frameon=False, fontsize=9)


def draw_plane(
    axes: Any, fronts: Sequence[Front], x: int, y: int, are_joined: Sequence[bool]
) -> Any:
    """Draw two tasks of fronts: non-dominated points bold, perhaps joined, dominated ones faint.

    Args:
        axes: Where to draw.
        fronts: Fronts of the same tasks.
        x: The column of the task that runs to the right.
        y: The column of the task that runs up.
        are_joined: For each front, whether its non-dominated points are joined by a line.

    Returns:
        What a colour bar can be made of, if there is one front.
    """
    shown = None
    for k, (front, joined) in enumerate(zip(fronts, are_joined, strict=True)):
        points = front.scores.numpy()[:, [x, y]]
        best = front.non_dominated_mask().numpy()
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        if joined:
            path = points[best][np.argsort(points[best][:, 0])]
            axes.plot(*path.T, color=colour if len(fronts) > 1 else "0.6", lw=1.3, zorder=1)
        if len(fronts) == 1:
            paint: dict[str, Any] = {"cmap": COLOUR_MAP, "vmin": 0.0, "vmax": 1.0}
            value = front.alphas[:, 0].numpy()
            axes.scatter(*points[~best].T, c=value[~best], s=22, alpha=0.35, lw=0, **paint)
            edge = {"edgecolors": "black", "linewidths": 0.7, "zorder": 3}
            size = 52 if joined else 34
            shown = axes.scatter(*points[best].T, c=value[best], s=size, **paint, **edge)
        else:
            look = {"color": colour, "marker": marker, "linewidths": 0}
            axes.scatter(*points[~best].T, s=16, alpha=0.3, **look)
            label = f"{front_name(front, k)}  ({volume_text(front)})"
            axes.scatter(*points[best].T, s=34, label=label, zorder=3, **look)
    axes.set_xlabel(axis_label(fronts[0], x))
    axes.set_ylabel(axis_label(fronts[0], y))
    axes.grid(color="0.92", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return shown


def _label_corners(axes: Any, front: Front) -> None:
    """The preferences at both ends, written on the worse side, where the curve is not."""
    right, up = front.signs.int().tolist()
    ends = front.alphas.argmax(dim=0).tolist()
    near, box = "right" if right > 0 else "left", {"fc": "white", "ec": "none", "alpha": 0.7}
    below, far = "top" if up > 0 else "bottom", "left" if right > 0 else "right"
    places: list[dict[str, Any]] = [
        {"xytext": (-10 * right, 0), "ha": near, "va": "center"},
        {"xytext": (0, -10 * up), "ha": far, "va": below},
    ]
    # One label only where one point has the largest weight of both tasks.
    for end, place in list(zip(ends, places, strict=True))[: len(set(ends))]:
        text = "α = (" + ", ".join(f"{a:.2g}" for a in front.alphas[end].tolist()) + ")"
        at = tuple(front.scores[end].tolist())
        style = {"fontsize": 8.5, "color": "0.25", "bbox": {**box, "pad": 1.0}}
        axes.annotate(text, at, textcoords="offset points", **place, **style)
