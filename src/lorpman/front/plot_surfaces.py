"""A front of three tasks as a surface, and what it looks like along each axis."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lorpman.front.front import Front
from lorpman.front.plot_curves import draw_plane
from lorpman.front.plot_style import COLOUR_MAP, COLOURS, draw_legend, plain_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_surfaces(figure: "Figure", fronts: Sequence[Front]) -> None:
    """Draw fronts of the same three tasks: the surfaces, and three planes of two tasks.

    Args:
        figure: An empty figure.
        fronts: One or more fronts.
    """
    space: Any = figure.add_subplot(2, 2, 1, projection="3d")
    for k, front in enumerate(fronts):
        _draw_surface(space, front, COLOURS[k % len(COLOURS)] if len(fronts) > 1 else None)
    for axis, name in zip((space.xaxis, space.yaxis, space.zaxis), fronts[0].tasks, strict=True):
        axis.set_label_text(plain_text(name))
        axis.set_tick_params(labelsize=8)
    space.locator_params(nbins=5)
    # Otherwise matplotlib turns the label along the axis on the page, and our angle is ignored.
    space.zaxis.set_rotate_label(False)
    space.zaxis.label.set_rotation(90)
    space.set_box_aspect(None, zoom=0.76)  # else labels reach into the neighbours
    flat = []
    for place, (x, y) in enumerate(((0, 1), (0, 2), (1, 2)), start=2):
        flat.append(figure.add_subplot(2, 2, place))
        shown = draw_plane(flat[-1], fronts, x, y, [False] * len(fronts))
    if len(fronts) == 1:
        bar = figure.colorbar(shown, ax=[space, *flat], shrink=0.6, pad=0.02)
        bar.set_label(f"preference for {plain_text(fronts[0].tasks[0])}")
    else:
        handles, labels = flat[0].get_legend_handles_labels()
        draw_legend(figure, handles, labels)


def _draw_surface(space: Any, front: Front, colour: str | None) -> None:
    """Triangles between neighbours on the simplex of preferences, under the points."""
    points, weight = front.scores.numpy(), front.alphas.numpy()
    best = front.non_dominated_mask().numpy()
    # Neighbours by preference: neighbours by score would join sheets that only pass each other.
    faces = triangles(weight[:, :2])
    if len(faces):
        look: dict[str, Any] = {"color": colour, "alpha": 0.25} if colour else {"cmap": COLOUR_MAP}
        face = space.plot_trisurf(*points.T, triangles=faces, lw=0.2, **look)
        if colour is None:
            face.set(array=weight[faces, 0].mean(axis=1), clim=(0.0, 1.0), alpha=0.55)
    for chosen, size, opacity in ((best, 22, 1.0), (~best, 10, 0.3)):
        paint = {"color": colour} if colour else {"c": weight[chosen, 0], "cmap": COLOUR_MAP}
        limits = {} if colour else {"vmin": 0.0, "vmax": 1.0}
        space.scatter(*points[chosen].T, s=size, alpha=opacity, lw=0, **paint, **limits)


def triangles(corners: Any) -> Any:
    """Triples of neighbouring points.

    Args:
        corners: Points of a plane, ``[n, 2]``.

    Returns:
        Rows of ``corners`` by number, ``[t, 3]``; none where the points do not span a plane.
    """
    from matplotlib.tri import Triangulation

    try:
        return Triangulation(*corners.T).triangles
    except (RuntimeError, ValueError):  # fewer than three distinct points, or all on a line
        return np.zeros((0, 3), dtype=int)
