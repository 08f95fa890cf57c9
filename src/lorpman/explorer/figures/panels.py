"""Figures with a title and a sentence, for the page and the report."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from lorpman.explorer.figures.layer_bars import draw_correlations, draw_energies
from lorpman.explorer.figures.parameter_counts import draw_parameter_counts
from lorpman.explorer.figures.style import Figure
from lorpman.explorer.figures.training_curves import draw_hypervolumes, draw_losses
from lorpman.explorer.learned_layers import learned_layers
from lorpman.explorer.opened_run import OpenedRun


@dataclass(frozen=True)
class Panel:
    """A figure that explains itself."""

    name: str
    """Part of the name of its element on the page."""
    title: str
    why: str
    """One sentence for a reader from outside the field."""
    figure: Figure
    """What plotly draws."""
    size: str = "short"
    """The class that gives its height in ``assets/explorer.css``."""


def training_panels(run: OpenedRun) -> list[Panel]:
    """The curves of a run's training, as far as it noted any.

    Args:
        run: The run.
    """
    panels = []
    if any("losses" in epoch for epoch in run.epochs):
        why = "How wrong the networks were on average after each pass over the data."
        panels.append(Panel("losses", "Training", why, draw_losses(run)))
    if (watched := draw_hypervolumes(run)) is not None:
        why = "Hypervolume on validation data after each pass."
        panels.append(Panel("volume", "Quality of the front", why, watched))
    return panels


def layer_panels(run: OpenedRun) -> list[Panel]:
    """The low-rank matrices of a run, layer by layer; none for other methods.

    Args:
        run: The run.
    """
    layers, tasks = learned_layers(run.model), run.front.tasks
    if not layers:
        return []
    return [
        Panel(
            "correlation",
            "Do the tasks' parts differ?",
            "Correlation of the low-rank matrices, layer by layer: near 0, every task has "
            "directions of its own.",
            draw_correlations(layers, tasks),
            "middle",
        ),
        Panel(
            "energy",
            "Where do the tasks differ?",
            "Energy: the size of each task's low-rank matrix next to the main weight of its layer "
            "(squared norms).",
            draw_energies(layers, tasks),
            "middle",
        ),
    ]


def storage_panel(runs: Sequence[OpenedRun]) -> Panel:
    """How much there is to store: by runs, one network, and one network per task.

    Args:
        runs: The runs on the page, of one problem.
    """
    one_network, num_tasks = count_network_parameters(runs[0]), len(runs[0].front.tasks)
    counts = [
        ("one network", one_network),
        *((run.title, run.parameters) for run in runs),
        ("PaMaL, one per task", num_tasks * one_network),
    ]
    return Panel(
        "parameters",
        "What it costs to store",
        "Numbers learned by one network for one trade-off, by each run for all of them, and by "
        "PaMaL, which keeps a whole network per task.",
        draw_parameter_counts(counts),
    )


def count_network_parameters(run: OpenedRun) -> int:
    """How many parameters one plain network of the run's problem has.

    Args:
        run: The run.
    """
    if run.model is not None:
        network = run.model.solution(run.model.preferences()[0])
    else:
        assert run.spec is not None  # only what has a model comes without it
        # On the meta device shapes are known and nothing is allocated.
        with torch.device("meta"):
            network = run.spec.problem.make_network(run.spec.data)
    return sum(parameter.numel() for parameter in network.parameters())
