"""Pictures of fronts: a curve for 2 tasks, a surface for 3, parallel coordinates for more."""

import io
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lorpman._files import write_bytes
from lorpman.errors import UsageError
from lorpman.front.front import Front, worst_and_best
from lorpman.task import HIGHER, LOWER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette without black and yellow: colour-blind readers tell these apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#882255", "#999933")
MARKERS = "osD^vPX*h"  # one more than colours, so that pairs repeat late
_MAP = "viridis"
_LEGEND_INSIDE = 6  # a longer one would hide points
_DPI = 150


def plot_front(front: Front, path: str | Path, title: str | None = None) -> None:
    """Draw one front into ``path``; the suffix picks the format (png, pdf, svg ...)."""
    plot_fronts([front], path, title)


def plot_fronts(
    fronts: Sequence[Front],
    path: str | Path,
    title: str | None = None,
    apart: Collection[str] = (),
) -> None:
    """Draw several fronts of the same tasks over each other, with their labels as a legend.

    Points of the fronts whose labels are in ``apart`` are not joined: there is nothing between
    the solutions of a discrete method.
    """
    from matplotlib.figure import Figure

    if not fronts:
        raise UsageError("plot_fronts needs at least one front, got none")
    first = fronts[0]
    for front in fronts:
        if not front.has_tasks_of(first):
            found = f"{list(first.tasks)} and {list(front.tasks)}"
            raise UsageError(f"fronts in one picture must have the same tasks, got {found}")
    count = len(first.tasks)
    size = {2: (6.4, 5.0), 3: (10.0, 8.4)}.get(count) or _parallel_size(first)
    figure = Figure(figsize=size, layout="constrained")
    if count == 2:
        _draw_curves(figure, fronts, apart)
    else:
        (_draw_surfaces if count == 3 else _draw_parallel)(figure, fronts)
    figure.suptitle(_title(fronts, title), fontsize=11)
    save_figure(figure, Path(path))


def _title(fronts: Sequence[Front], title: str | None) -> str:
    if len(fronts) > 1:
        return title or "Fronts compared"
    head = title or _text(fronts[0].label)
    return f"{head}\n{volume_text(fronts[0])}" if head else volume_text(fronts[0])


def volume_text(front: Front) -> str:
    try:
        volume = front.hypervolume()
    except UsageError:  # a picture is worth having where the volume fits no float
        return "hypervolume out of range"
    error = f" ± {volume.stderr:.1g}" if volume.stderr else ""
    return f"hypervolume {figures(volume.value, 4)}{error}"


def figures(value: float, digits: int) -> str:
    """So many significant digits, zeros included: 0.950 beside 0.948."""
    return f"{value:#.{digits}g}".rstrip(".")


def _text(name: str) -> str:
    return name.replace("$", r"\$")  # a dollar sign would start a formula


def axis_label(front: Front, task: int) -> str:
    # Turned with the label of an upright axis, the arrow still points along that axis.
    name = front.tasks[task]
    return f"{_text(name)}  ({front.direction(name).axis_words})"


def save_figure(figure: "Figure", path: Path) -> None:
    formats = figure.canvas.get_supported_filetypes()
    kind = path.suffix[1:].lower()
    if kind not in formats:
        known = ", ".join(sorted(formats))
        raise UsageError(f"cannot draw into '{path}': the file name must end in one of {known}")
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=_DPI)
    write_bytes(path, picture.getvalue())


def _legend(figure: "Figure", handles: Any, labels: Any) -> None:
    """Below everything, in as many columns as the width has room for."""
    widest = 0.085 * max(map(len, labels)) + 0.6  # inches
    columns = max(1, min(len(labels), int(figure.get_figwidth() / widest)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


# Two tasks.


def _draw_curves(figure: "Figure", fronts: Sequence[Front], apart: Collection[str]) -> None:
    axes = figure.subplots()
    shown = _draw_plane(axes, fronts, 0, 1, [front.label not in apart for front in fronts])
    if len(fronts) == 1:
        _label_corners(axes, fronts[0])
        bar = figure.colorbar(shown, ax=axes, pad=0.02)
        bar.set_label(f"preference for {_text(fronts[0].tasks[0])}")
    elif len(fronts) > _LEGEND_INSIDE:
        figure.set_figheight(figure.get_figheight() + 0.2 * len(fronts))
        _legend(figure, *axes.get_legend_handles_labels())
    else:
        axes.legend(frameon=False, fontsize=9)


def _draw_plane(
    axes: Any, fronts: Sequence[Front], x: int, y: int, are_joined: Sequence[bool]
) -> Any:
    """Tasks ``x`` and ``y``: non-dominated points bold, perhaps joined, dominated ones faint."""
    shown = None
    for k, (front, joined) in enumerate(zip(fronts, are_joined, strict=True)):
        points = front.scores.numpy()[:, [x, y]]
        best = front.non_dominated_mask().numpy()
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        if joined:
            path = points[best][np.argsort(points[best][:, 0])]
            axes.plot(*path.T, color=colour if len(fronts) > 1 else "0.6", lw=1.3, zorder=1)
        if len(fronts) == 1:
            paint: dict[str, Any] = {"cmap": _MAP, "vmin": 0.0, "vmax": 1.0}
            value = front.alphas[:, 0].numpy()
            axes.scatter(*points[~best].T, c=value[~best], s=22, alpha=0.35, lw=0, **paint)
            edge = {"edgecolors": "black", "linewidths": 0.7, "zorder": 3}
            size = 52 if joined else 34
            shown = axes.scatter(*points[best].T, c=value[best], s=size, **paint, **edge)
        else:
            look = {"color": colour, "marker": marker, "linewidths": 0}
            axes.scatter(*points[~best].T, s=16, alpha=0.3, **look)
            label = f"{_name(front, k)}  ({volume_text(front)})"
            axes.scatter(*points[best].T, s=34, label=label, zorder=3, **look)
    axes.set_xlabel(axis_label(fronts[0], x))
    axes.set_ylabel(axis_label(fronts[0], y))
    axes.grid(color="0.92", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return shown


def _name(front: Front, k: int) -> str:
    return _text(front.label) or f"front {k + 1}"


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
    for end, place in list(zip(ends, places, strict=True))[: len(set(ends))]:
        text = "α = (" + ", ".join(f"{a:.2g}" for a in front.alphas[end].tolist()) + ")"
        at = tuple(front.scores[end].tolist())
        style = {"fontsize": 8.5, "color": "0.25", "bbox": {**box, "pad": 1.0}}
        axes.annotate(text, at, textcoords="offset points", **place, **style)


# Three tasks.


def _draw_surfaces(figure: "Figure", fronts: Sequence[Front]) -> None:
    """The surface, and what it looks like along each axis."""
    space: Any = figure.add_subplot(2, 2, 1, projection="3d")
    for k, front in enumerate(fronts):
        _draw_surface(space, front, COLOURS[k % len(COLOURS)] if len(fronts) > 1 else None)
    for axis, name in zip((space.xaxis, space.yaxis, space.zaxis), fronts[0].tasks, strict=True):
        axis.set_label_text(_text(name))
        axis.set_tick_params(labelsize=8)
    space.locator_params(nbins=5)
    space.zaxis.set_rotate_label(False)
    space.zaxis.label.set_rotation(90)
    space.set_box_aspect(None, zoom=0.76)  # else labels reach into the neighbours
    flat = []
    for place, (x, y) in enumerate(((0, 1), (0, 2), (1, 2)), start=2):
        flat.append(figure.add_subplot(2, 2, place))
        shown = _draw_plane(flat[-1], fronts, x, y, [False] * len(fronts))
    if len(fronts) == 1:
        bar = figure.colorbar(shown, ax=[space, *flat], shrink=0.6, pad=0.02)
        bar.set_label(f"preference for {_text(fronts[0].tasks[0])}")
    else:
        handles, labels = flat[0].get_legend_handles_labels()
        _legend(figure, handles, labels)


def _draw_surface(space: Any, front: Front, colour: str | None) -> None:
    """Triangles between neighbours on the simplex of preferences, under the points."""
    points, weight = front.scores.numpy(), front.alphas.numpy()
    best = front.non_dominated_mask().numpy()
    faces = triangles(weight[:, :2])
    if len(faces):
        look: dict[str, Any] = {"color": colour, "alpha": 0.25} if colour else {"cmap": _MAP}
        face = space.plot_trisurf(*points.T, triangles=faces, lw=0.2, **look)
        if colour is None:
            face.set(array=weight[faces, 0].mean(axis=1), clim=(0.0, 1.0), alpha=0.55)
    for chosen, size, opacity in ((best, 22, 1.0), (~best, 10, 0.3)):
        paint = {"color": colour} if colour else {"c": weight[chosen, 0], "cmap": _MAP}
        limits = {} if colour else {"vmin": 0.0, "vmax": 1.0}
        space.scatter(*points[chosen].T, s=size, alpha=opacity, lw=0, **paint, **limits)


def triangles(corners: Any) -> Any:
    """Triples of neighbouring points ``[t, 3]``; none where they do not span a plane."""
    from matplotlib.tri import Triangulation

    try:
        return Triangulation(*corners.T).triangles
    except (RuntimeError, ValueError):  # fewer than three distinct points, or all on a line
        return np.zeros((0, 3), dtype=int)


# More tasks, or one.


def _draw_parallel(figure: "Figure", fronts: Sequence[Front]) -> None:
    """One upright axis per task, each from its worst score, below, to its best, above."""
    axes: Any = figure.subplots()
    tables = [front.scores.numpy() for front in fronts]
    worst, best = (end.numpy() for end in worst_and_best(fronts))
    width = np.where(best == worst, 1.0, best - worst)
    heights = [np.where(best == worst, 0.5, (table - worst) / width) for table in tables]
    axes.vlines(range(len(best)), 0.0, 1.0, color="0.85", lw=0.8, zorder=0)
    if len(fronts) == 1:
        _draw_lines(axes, fronts[0], heights[0])
        note = "colour and dot: the task with the largest weight"
    else:
        for k, (front, height) in enumerate(zip(fronts, heights, strict=True)):
            _draw_band(axes, height, f"{_name(front, k)}  ({volume_text(front)})", k)
        _legend(figure, *axes.get_legend_handles_labels())
        note = "line: median over preferences; band: from the worst to the best"
    _label_tasks(axes, fronts[0], worst, best)
    axes.set_ylabel("worst → best of each task")
    axes.set_xlabel(note, fontsize=9, color="0.35")


def _draw_lines(axes: Any, front: Front, height: Any) -> None:
    from matplotlib import colormaps

    n, m = height.shape
    weight = front.alphas.numpy()
    # The most decided preferences last, on top.
    for i in np.argsort(weight.max(axis=1), kind="stable"):
        task = int(weight[i].argmax())
        colour = colormaps[_MAP](task / max(m - 1, 1))
        opacity = 1.0 if n == 1 else 0.2 + 0.7 * float(weight[i].max())
        axes.plot(range(m), height[i], color=colour, lw=1.1, alpha=opacity)
        axes.plot(task, height[i, task], "o", color=colour, ms=4.5, alpha=opacity)


def _draw_band(axes: Any, height: Any, label: str, k: int) -> None:
    colour, x = COLOURS[k % len(COLOURS)], range(height.shape[1])
    axes.fill_between(x, height.min(axis=0), height.max(axis=0), color=colour, alpha=0.1, lw=0)
    for edge in (height.min(axis=0), height.max(axis=0)):
        axes.plot(x, edge, color=colour, lw=0.7, alpha=0.8)
    look = {"color": colour, "marker": MARKERS[k % len(MARKERS)], "ms": 4.0, "lw": 1.6}
    axes.plot(x, np.median(height, axis=0), label=label, **look)


def _turned(front: Front) -> bool:
    """Whether names under the axes must stand upright to fit."""
    return len(front.tasks) > 6 or len(front.tasks) * max(map(len, front.tasks)) > 80


def _parallel_size(front: Front) -> tuple[float, float]:
    names = 0.07 * max(map(len, front.tasks)) if _turned(front) else 0.0
    return min(max(7.0, 0.36 * len(front.tasks) + 2.0), 18.0), 5.0 + min(names, 3.0)


def _label_tasks(axes: Any, front: Front, worst: Any, best: Any) -> None:
    """Names under the axes, turned when there are many, with the scores at both ends."""
    count, turned = len(front.tasks), _turned(front)
    size = 9.0 if count <= 12 else 7.5
    gap = " " if turned else "\n"
    # Most scores are better when higher; only the others need a word.
    remarks = {HIGHER: "", LOWER: f"{gap}({LOWER.words})"}
    names = [_text(name) + remarks[front.direction(name)] for name in front.tasks]
    axes.set_xticks(range(count), names, rotation=90 if turned else 0, fontsize=size)
    axes.set_xlim(-0.5, count - 0.5)
    room = 0.15 if turned else 0.1
    axes.set_ylim(-room, 1.0 + room)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    style = {"ha": "center", "color": "0.35", "fontsize": size - 1, "rotation": 90 * turned}
    for x in range(count):
        axes.text(x, -0.03, figures(worst[x], 3), va="top", **style)
        axes.text(x, 1.03, figures(best[x], 3), va="bottom", **style)
