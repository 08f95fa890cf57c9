"""The paper's figure of PaMaL's members: how alike their layers become while training."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lorpman.errors import UsageError
from lorpman.front.dominance import Floats
from lorpman.front.plot_style import save_figure
from lorpman.lab.reproduce.run_record import Note


def plot_similarity(runs: Sequence[Sequence[Note]], path: str | Path) -> None:
    """Draw the cosine similarity of PaMaL's members, layer by layer, into ``path``.

    Lines are means over runs, bands the 95% confidence interval of the mean (Student's t).

    Args:
        runs: The notes of every epoch, of runs that differ in their seed only.
        path: The picture; its suffix picks the format.

    Raises:
        UsageError: If there is no run, or one without similarities, or one of another network.
    """
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    epochs, layers = similarities(runs)
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    for place, (name, values) in enumerate(layers.items()):
        colour = colormaps["viridis"](0.9 * place / max(1, len(layers) - 1))
        mean, half = values.mean(0), _half_width(values)
        axes.plot(epochs, mean, color=colour, label=name.replace("$", r"\$"))
        if len(values) > 1:
            axes.fill_between(epochs, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
    axes.set(xlabel="epoch", ylabel="cosine similarity of the members")
    axes.legend(frameon=False, fontsize=8, title="layer")
    axes.grid(color="0.92", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    seeds = f"{len(runs)} run" + "s, 95% interval of the mean" * (len(runs) > 1)
    axes.set_title(seeds, fontsize=11)
    save_figure(figure, Path(path))


def similarities(runs: Sequence[Sequence[Note]]) -> tuple[list[int], dict[str, Floats]]:
    """Put the similarities of several runs together.

    Args:
        runs: The notes of every epoch of each run.

    Returns:
        The epochs that all runs noted, and for each layer its similarities ``[runs, epochs]``.

    Raises:
        UsageError: If there is no run, or one without similarities, or one of another network.
    """
    if not runs:
        raise UsageError("a picture of similarities needs at least one run, got none")
    tables = []
    for notes in runs:
        table = {note["number"]: note["similarity"] for note in notes if "similarity" in note}
        if not table:
            raise UsageError(
                "a run noted no similarity of members; only PaMaL's do: "
                "lorpman train PROBLEM --method pamal"
            )
        tables.append(table)
    epochs = sorted(set.intersection(*(set(table) for table in tables)))
    names = list(tables[0][epochs[0]])
    if any(set(table[epochs[0]]) != set(names) for table in tables):
        raise UsageError("runs in one picture must be of one network, found other layers")
    return epochs, {
        name: np.array([[table[epoch][name] for epoch in epochs] for table in tables])
        for name in names
    }


def _half_width(values: Floats) -> Floats:
    """Half of the 95% confidence interval of the mean over the rows ``[n, k]``."""
    n = len(values)
    if n == 1:
        return np.zeros(values.shape[1])
    from scipy.stats import t

    spread: Floats = values.std(0, ddof=1) / np.sqrt(n) * float(t.ppf(0.975, n - 1))
    return spread
