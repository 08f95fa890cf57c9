"""What all figures share: colours, signs, layout, and the words on points and axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.front import Front, worst_and_best
from lorpman.front.plot_style import COLOURS, significant

Figure = dict[str, Any]
Trace = dict[str, Any]

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star")
SYMBOLS_3D = ("circle", "square", "diamond", "cross", "x")
"""Those that plotly can draw in space."""
GREY = "#8b8f97"
"""Readable on light and on dark ground."""
FAINT = 0.28
"""The opacity of dominated points."""
# Above the plot, growing upwards where it needs several lines.
LEGEND = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}

_GLYPHS = {
    "circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "triangle-down": "▼",
    "cross": "✚", "x": "✖", "star": "★",
}  # fmt: skip
# Longer lists would make the label under the pointer cover the plot.
_MOST_WEIGHTS = 4
_MOST_SCORES = 6


def colour(place: int) -> str:
    """The colour of a run or of a task.

    Args:
        place: Which one, in the order of the command line or of the front, from 0.
    """
    return COLOURS[place % len(COLOURS)]


def glyph(place: int, num_tasks: int) -> str:
    """The sign of a run's points as a character: colours alone do not tell runs apart.

    Args:
        place: Which run, in the order of the command line, from 0.
        num_tasks: The number of tasks; figures in three dimensions have other signs.

    >>> glyph(1, num_tasks=2)
    '■'
    """
    symbols = SYMBOLS_3D if num_tasks == 3 else SYMBOLS
    return _GLYPHS[symbols[place % len(symbols)]]


def basic_layout(**more: Any) -> dict[str, Any]:
    """The layout that all figures start from. The script sets the colours of text and lines.

    Args:
        more: What goes over it, as plotly names it.
    """
    base = {
        "margin": {"l": 62, "r": 16, "t": 14, "b": 52},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "showlegend": False,
        "hovermode": "closest",
        # The same text at every redraw: plotly then keeps zoom and camera.
        "uirevision": "kept",
        "clickmode": "event",
    }
    return base | more


def axis_title(front: Front, task: int) -> str:
    """A task's name, and which way is better.

    Args:
        front: The front.
        task: The place of the task in it.
    """
    name = front.tasks[task]
    return f"{name} ({front.direction(name).axis_words})"


def shortened(name: str, most: int = 18) -> str:
    """A name that fits under an axis.

    Args:
        name: The name.
        most: How many characters fit.

    >>> shortened("aquatic mammals", 8)
    'aquatic…'
    """
    return name if len(name) <= most else name[: most - 1] + "…"


def weights_text(tasks: Sequence[str], alpha: Sequence[float]) -> str:
    """A preference in words; of many tasks, those with the largest weights.

    Args:
        tasks: The names of the tasks.
        alpha: The preference ``[m]``.

    >>> weights_text(["left", "right"], [0.3, 0.7])
    'left 30%, right 70%'
    """
    places = list(range(len(tasks)))
    if len(tasks) > _MOST_WEIGHTS:
        places.sort(key=lambda i: -alpha[i])
    parts = [f"{tasks[i]} {alpha[i]:.0%}" for i in places[:_MOST_WEIGHTS]]
    return ", ".join(parts) + (" ..." if len(tasks) > _MOST_WEIGHTS else "")


def hover_texts(run: OpenedRun) -> list[str]:
    """What the pointer shows at each point of a front.

    Args:
        run: The run.

    Returns:
        A text of HTML for each point.
    """
    front = run.front
    texts = []
    for alpha, scores in zip(front.alphas.tolist(), front.scores.tolist(), strict=True):
        shown = [f"{task} {significant(s, 4)}" for task, s in zip(front.tasks, scores, strict=True)]
        more = "<br>..." if len(shown) > _MOST_SCORES else ""
        texts.append(
            f"<b>{run.title}</b><br>preference: {weights_text(front.tasks, alpha)}<br>"
            + "<br>".join(shown[:_MOST_SCORES])
            + more
        )
    return texts


def point_details(run: OpenedRun, places: Sequence[int]) -> dict[str, Any]:
    """The part of a trace that says which points of ``run`` it holds, and describes them.

    Args:
        run: The run that the points are of.
        places: Where on its front they stand, in the order of the trace.
    """
    hover = hover_texts(run)
    return {
        "customdata": [[run.key, place] for place in places],
        "text": [hover[place] for place in places],
        "hovertemplate": "%{text}<extra></extra>",
        "meta": {"run": run.key},
        "name": run.title,
    }


def is_on_front(front: Front) -> Any:
    """Which points no other dominates, as an array ``[n]``: those are drawn bold.

    Args:
        front: The front, with n points.
    """
    return front.non_dominated_mask().numpy()


def score_limits(fronts: Sequence[Front]) -> tuple[list[float], list[float]]:
    """Each task's worst and best score over all fronts: the ends of its axis.

    Args:
        fronts: Fronts of the same tasks.

    Returns:
        The worst and the best scores, ``[m]`` each, and never equal: heights divide by their
        difference.
    """
    worst, best = (end.numpy() for end in worst_and_best(fronts))
    best = np.where(best == worst, worst + 1e-9 * fronts[0].signs.numpy(), best)
    return worst.tolist(), best.tolist()
