"""A picture of automatic ranks: a bar for each layer."""

from pathlib import Path

from lorpman.front.plot_style import COLOURS, plain_text, save_figure
from lorpman.manifold.low_rank import LowRank


def plot_ranks(model: LowRank, path: str | Path) -> None:
    """Draw the rank of every layer, in front of the full rank that it could have.

    Args:
        model: A manifold that chose its ranks.
        path: The file; its suffix picks the format.

    Raises:
        UsageError: If the suffix is unknown, or the file cannot be written.
    """
    # Imported here: it is slow.
    from matplotlib.figure import Figure

    ranks, deltas = model.ranks(), model.low_rank_deltas()
    full = [min(len(delta.B), delta.A.shape[2]) for delta in deltas.values()]
    figure = Figure(figsize=(6.4, 1.4 + 0.3 * len(ranks)), layout="constrained")
    axes = figure.subplots()
    places = list(range(len(ranks)))
    axes.barh(places, full, color="0.9", label="full rank")
    bars = axes.barh(places, list(ranks.values()), color=COLOURS[0], height=0.6, label="found")
    axes.bar_label(bars, padding=3, fontsize=8)
    axes.set_yticks(places, [plain_text(name) for name in ranks], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("rank of the task matrices")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{model.spent():,} of {model.budget:,} parameters", fontsize=11)
    save_figure(figure, Path(path))
