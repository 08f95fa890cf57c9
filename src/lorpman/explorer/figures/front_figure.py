"""The picture of fronts that fits their number of tasks."""

from collections.abc import Sequence

from lorpman.explorer.figures.curves import draw_curves
from lorpman.explorer.figures.parallel_axes import draw_parallel_axes
from lorpman.explorer.figures.style import Figure
from lorpman.explorer.figures.surfaces import draw_surfaces
from lorpman.explorer.opened_run import OpenedRun


def front_figure(runs: Sequence[OpenedRun]) -> Figure:
    """All fronts over one another: a curve for two tasks, a surface for three, else parallel axes.

    Args:
        runs: Runs of the same tasks, in the order of their colours.
    """
    draw = {2: draw_curves, 3: draw_surfaces}.get(len(runs[0].front.tasks), draw_parallel_axes)
    return draw(runs)
