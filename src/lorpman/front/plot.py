"""Pictures of fronts: a curve for 2 tasks, a surface for 3, parallel coordinates for more."""

from collections.abc import Collection, Sequence
from pathlib import Path

from lorpman.errors import UsageError
from lorpman.front.front import Front
from lorpman.front.plot_curves import draw_curves
from lorpman.front.plot_parallel import draw_parallel, parallel_size
from lorpman.front.plot_style import plain_text, save_figure, volume_text
from lorpman.front.plot_surfaces import draw_surfaces


def plot_front(front: Front, path: str | Path, title: str | None = None) -> None:
    """Draw one front into ``path``; the suffix picks the format (png, pdf, svg ...).

    Args:
        front: The front.
        path: The file.
        title: What stands above; by default the front's label.

    Raises:
        UsageError: If the suffix is unknown, or the file cannot be written.
    """
    plot_fronts([front], path, title)


def plot_fronts(
    fronts: Sequence[Front],
    path: str | Path,
    title: str | None = None,
    apart: Collection[str] = (),
) -> None:
    """Draw several fronts of the same tasks over each other, with their labels as a legend.

    Args:
        fronts: One or more fronts.
        path: The file; its suffix picks the format (png, pdf, svg ...).
        title: What stands above.
        apart: Labels of fronts whose points are not joined: there is nothing between the
            solutions of a discrete method.

    Raises:
        UsageError: If there is no front, if the tasks differ, or if the file cannot be written.
    """
    # Imported here: it is slow.
    from matplotlib.figure import Figure

    if not fronts:
        raise UsageError("plot_fronts needs at least one front, got none")
    first = fronts[0]
    for front in fronts:
        if not front.has_tasks_of(first):
            both = f"{list(first.tasks)} and {list(front.tasks)}"
            raise UsageError(f"fronts in one picture must have the same tasks, got {both}")
    count = len(first.tasks)
    size = {2: (6.4, 5.0), 3: (10.0, 8.4)}.get(count) or parallel_size(first)
    figure = Figure(figsize=size, layout="constrained")
    if count == 2:
        draw_curves(figure, fronts, apart)
    else:
        (draw_surfaces if count == 3 else draw_parallel)(figure, fronts)
    figure.suptitle(_title(fronts, title), fontsize=11)
    save_figure(figure, Path(path))


def _title(fronts: Sequence[Front], title: str | None) -> str:
    if len(fronts) > 1:
        return title or "Fronts compared"
    head = title or plain_text(fronts[0].label)
    return f"{head}\n{volume_text(fronts[0])}" if head else volume_text(fronts[0])
