"""A picture of uneven ranks: a bar for each layer."""

from collections.abc import Mapping
from pathlib import Path

from lorpman.plot import COLOURS, save_figure


def plot_ranks(
    ranks: Mapping[str, int], full: Mapping[str, int], path: str | Path, title: str
) -> None:
    """Draw the rank of every layer into ``path``, before the ``full`` rank that it could have."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 1.4 + 0.3 * len(ranks)), layout="constrained")
    axes = figure.subplots()
    places = list(range(len(ranks)))
    axes.barh(places, [full[name] for name in ranks], color="0.9", label="full rank")
    bars = axes.barh(places, list(ranks.values()), color=COLOURS[0], height=0.6, label="found")
    axes.bar_label(bars, padding=3, fontsize=8)
    axes.set_yticks(places, [name.replace("$", r"\$") for name in ranks], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("rank of the task matrices")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=11)
    save_figure(figure, Path(path))
