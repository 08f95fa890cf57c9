"""What a run learned and how: figures with a title and a sentence, for the page and the report."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lorpman.explorer import run_figures
from lorpman.explorer.front_figures import Figure
from lorpman.explorer.learned_layers import layers
from lorpman.explorer.opened_run import Opened


@dataclass(frozen=True)
class Panel:
    """A figure that explains itself."""

    name: str
    title: str
    why: str
    figure: Figure
    size: str = "short"


def training(run: Opened) -> list[Panel]:
    """The curves of a run, as far as it noted any."""
    found = []
    if any("losses" in note for note in run.notes):
        why = "How wrong the networks were on average after each pass over the data."
        found.append(Panel("losses", "Training", why, run_figures.losses(run)))
    if (watched := run_figures.volumes(run)) is not None:
        why = "Hypervolume on validation data after each pass."
        found.append(Panel("volume", "Quality of the front", why, watched))
    return found


def learned(run: Opened) -> list[Panel]:
    """The low-rank matrices of a run, layer by layer; none for other methods."""
    found, tasks = layers(run.model), run.front.tasks
    if not found:
        return []
    return [
        Panel(
            "correlation",
            "Do the tasks' parts differ?",
            "Correlation of the low-rank matrices, layer by layer: near 0, every task has "
            "directions of its own.",
            run_figures.correlations(found, tasks),
            "middle",
        ),
        Panel(
            "energy",
            "Where do the tasks differ?",
            "Energy: the size of each task's low-rank matrix next to the main weight of its layer "
            "(squared norms).",
            run_figures.energies(found, tasks),
            "middle",
        ),
    ]


def cost(runs: Sequence[Opened]) -> Panel:
    """How much there is to store."""
    one, m = one_network(runs[0]), len(runs[0].front.tasks)
    own = [(run.title, run.parameters) for run in runs]
    counts = [("one network", one), *own, ("PaMaL, one per task", m * one)]
    return Panel(
        "parameters",
        "What it costs to store",
        "Numbers learned by one network for one trade-off, by each run for all of them, and by "
        "PaMaL, which keeps a whole network per task.",
        run_figures.parameter_counts(counts),
    )


def one_network(run: Opened) -> int:
    """How many parameters one network of the run's problem has; its weights are never made."""
    with torch.device("meta"):
        network = run.spec.problem.network(run.spec.data)
    return sum(parameter.numel() for parameter in network.parameters())
