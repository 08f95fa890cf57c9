"""A front of many tasks, or of one, as parallel coordinates: an upright axis for each task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lorpman.front.front import Front, worst_and_best
from lorpman.front.plot_style import (
    COLOUR_MAP,
    COLOURS,
    MARKERS,
    draw_legend,
    front_name,
    plain_text,
    significant,
    volume_text,
)
from lorpman.task import HIGHER, LOWER

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_parallel(figure: "Figure", fronts: Sequence[Front]) -> None:
    """Draw fronts of the same tasks: axes from the worst score, below, to the best, above.

    Args:
        figure: An empty figure.
        fronts: One front, of which every point is drawn, or several, drawn as bands.
    """
    axes: Any = figure.subplots()
    tables = [front.scores.numpy() for front in fronts]
    worst, best = (end.numpy() for end in worst_and_best(fronts))
    # A task that is the same everywhere has no range; its points are drawn half way up.
    width = np.where(best == worst, 1.0, best - worst)
    heights = [np.where(best == worst, 0.5, (table - worst) / width) for table in tables]
    axes.vlines(range(len(best)), 0.0, 1.0, color="0.85", lw=0.8, zorder=0)
    if len(fronts) == 1:
        _draw_lines(axes, fronts[0], heights[0])
        note = "colour and dot: the task with the largest weight"
    else:
        for k, (front, height) in enumerate(zip(fronts, heights, strict=True)):
            _draw_band(axes, height, f"{front_name(front, k)}  ({volume_text(front)})", k)
        draw_legend(figure, *axes.get_legend_handles_labels())
        note = "line: median over preferences; band: from the worst to the best"
    _label_tasks(axes, fronts[0], worst, best)
    axes.set_ylabel("worst → best of each task")
    axes.set_xlabel(note, fontsize=9, color="0.35")


def _draw_lines(axes: Any, front: Front, height: Any) -> None:
    """One front: a line for each point, in the colour of the task with the largest weight."""
    from matplotlib import colormaps

    n, m = height.shape
    weight = front.alphas.numpy()
    # The most decided preferences last, on top.
    for i in np.argsort(weight.max(axis=1), kind="stable"):
        task = int(weight[i].argmax())
        colour = colormaps[COLOUR_MAP](task / max(m - 1, 1))
        opacity = 1.0 if n == 1 else 0.2 + 0.7 * float(weight[i].max())
        axes.plot(range(m), height[i], color=colour, lw=1.1, alpha=opacity)
        axes.plot(task, height[i, task], "o", color=colour, ms=4.5, alpha=opacity)


def _draw_band(axes: Any, height: Any, label: str, k: int) -> None:
    """One front of several: its median, and the band between its worst and its best."""
    colour, x = COLOURS[k % len(COLOURS)], range(height.shape[1])
    axes.fill_between(x, height.min(axis=0), height.max(axis=0), color=colour, alpha=0.1, lw=0)
    for edge in (height.min(axis=0), height.max(axis=0)):
        axes.plot(x, edge, color=colour, lw=0.7, alpha=0.8)
    look = {"color": colour, "marker": MARKERS[k % len(MARKERS)], "ms": 4.0, "lw": 1.6}
    axes.plot(x, np.median(height, axis=0), label=label, **look)


def _names_upright(front: Front) -> bool:
    """Whether names under the axes must stand upright to fit."""
    return len(front.tasks) > 6 or len(front.tasks) * max(map(len, front.tasks)) > 80


def parallel_size(front: Front) -> tuple[float, float]:
    """The size of the figure that the tasks of a front and their names need.

    Args:
        front: The front.

    Returns:
        Width and height in inches.
    """
    names = 0.07 * max(map(len, front.tasks)) if _names_upright(front) else 0.0
    return min(max(7.0, 0.36 * len(front.tasks) + 2.0), 18.0), 5.0 + min(names, 3.0)


def _label_tasks(axes: Any, front: Front, worst: Any, best: Any) -> None:
    """Names under the axes, turned when there are many, with the scores at both ends."""
    count, turned = len(front.tasks), _names_upright(front)
    size = 9.0 if count <= 12 else 7.5
    gap = " " if turned else "\n"
    # Most scores are better when higher; only the others need a word.
    remarks = {HIGHER: "", LOWER: f"{gap}({LOWER.words})"}
    names = [plain_text(name) + remarks[front.direction(name)] for name in front.tasks]
    axes.set_xticks(range(count), names, rotation=90 if turned else 0, fontsize=size)
    axes.set_xlim(-0.5, count - 0.5)
    room = 0.15 if turned else 0.1
    axes.set_ylim(-room, 1.0 + room)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    style = {"ha": "center", "color": "0.35", "fontsize": size - 1, "rotation": 90 * turned}
    for x in range(count):
        axes.text(x, -0.03, significant(worst[x], 3), va="top", **style)
        axes.text(x, 1.03, significant(best[x], 3), va="bottom", **style)
