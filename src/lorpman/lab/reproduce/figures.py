"""The pictures of reproductions, in the layout of the paper's."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lorpman.front.front import Front
from lorpman.front.plot import plot_fronts
from lorpman.front.plot_style import COLOURS, MARKERS, axis_label, save_figure
from lorpman.lab.methods.registry import get_method
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.reproduce.measures import mean_losses
from lorpman.lab.reproduce.number_format import spread
from lorpman.lab.reproduce.outcome import MeasuredLine, Outcome
from lorpman.lab.reproduce.reproduction import Reported
from lorpman.lab.reproduce.similarity_figure import plot_similarity

_OURS, _PAPER = "#0072B2", "#D55E00"


def _title(outcome: Outcome) -> str:
    """What is shown, at which scale; noise must never pass for data."""
    data = "GENERATED DATA, no quality claim" if outcome.generated else f"{outcome.scale} scale"
    return f"{outcome.plan.problem}, {data}"


def _look(outcome: Outcome, measured: MeasuredLine) -> dict[str, Any]:
    """Colour and marker of a line: the first ones for LORPMAN, wherever it stands."""
    lines = sorted(outcome.reproduction.lines, key=lambda line: line.method != "lorpman")
    k = lines.index(measured.line)
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def draw_toy(outcome: Outcome, path: Path) -> None:
    """Trajectories in objective and in parameter space.

    Args:
        outcome: The run, with the history of its training.
        path: The picture's file.
    """
    record = outcome.records[0]
    draw = get_problem(record.problem).figure
    assert draw is not None
    draw(record.history, record.front, path)


def draw_similarity(outcome: Outcome, path: Path) -> None:
    """Similarity of PaMaL's members by layer and epoch.

    Args:
        outcome: The runs, with the histories of their training.
        path: The picture's file.
    """
    plot_similarity([record.history for record in outcome.records], path)


def draw_fronts(outcome: Outcome, path: Path) -> None:
    """Two tasks: every seed, the front itself bold. More: the seed in the middle of each method.

    Args:
        outcome: The runs of every method and seed.
        path: The picture's file.
    """
    if len(outcome.records[0].front.tasks) == 2:
        _draw_planes(outcome, path)
        return
    lines = sorted(outcome.made, key=lambda measured: measured.line.method != "lorpman")
    plot_fronts([_middle(measured) for measured in lines], path, _title(outcome))


def _middle(measured: MeasuredLine) -> Front:
    """The front of the middle seed stands for the line: all would hide one another."""
    ranked = sorted(measured.records, key=lambda record: record.hypervolume)
    return replace(ranked[(len(ranked) - 1) // 2].front, label=measured.line.label)


def _draw_planes(outcome: Outcome, path: Path) -> None:
    """All points at the left; at the right the corner where most of the best are."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 5.2), layout="constrained")
    whole, near = figure.subplots(1, 2)
    for measured in outcome.made:
        look = _look(outcome, measured)
        joined = get_method(measured.line.method).kind == "continuous"
        for axes in (whole, near):
            for place, record in enumerate(measured.records):
                # One entry in the legend for all seeds.
                label = measured.line.label if place == 0 else None
                _draw_seed(axes, record.front, look, joined, label)
    fronts = [record.front for record in outcome.records]
    _zoom(near, fronts)
    for axes in (whole, near):
        axes.set(xlabel=axis_label(fronts[0], 0), ylabel=axis_label(fronts[0], 1))
        _tidy(axes)
    seeds = len(outcome.seeds)
    whole.set_title(f"{_title(outcome)}, {seeds} seed{'s' * (seeds > 1)}", fontsize=11)
    near.set_title("the best corner", fontsize=11)
    handles, labels = whole.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    save_figure(figure, path)


def _zoom(axes: Any, fronts: Sequence[Front]) -> None:
    """Limit both axes to the better three quarters of what nothing beats in its own front."""
    gains = np.concatenate([front.non_dominated().gains.numpy() for front in fronts])
    limits = []
    for values, sign in zip(gains.T, fronts[0].signs.numpy(), strict=True):
        best, middle = sign * values.max(), sign * np.quantile(values, 0.25)
        # A front of one point has no extent, and matplotlib wants limits that differ.
        room = 0.25 * (best - middle) or 1e-3
        limits.append(sorted((middle - room, best + room)))
    axes.set(xlim=limits[0], ylim=limits[1])


def _draw_seed(
    axes: Any, front: Front, look: dict[str, Any], joined: bool, label: str | None
) -> None:
    """One front: what nothing beats bold, the rest faint."""
    points = front.scores.numpy()
    best = front.non_dominated_mask().numpy()
    if joined:
        line = points[best][np.argsort(points[best][:, 0])]
        axes.plot(*line.T, color=look["color"], lw=1.0, alpha=0.7, zorder=1)
    axes.scatter(*points[~best].T, s=14, alpha=0.25, lw=0, **look)
    axes.scatter(*points[best].T, s=28, lw=0, label=label, zorder=3, **look)


def _tidy(axes: Any) -> None:
    axes.grid(color="0.92", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw_losses(outcome: Outcome, path: Path) -> None:
    """Training loss, a mean over tasks, by epoch.

    Args:
        outcome: The runs, with the histories of their training.
        path: The picture's file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.8, 4.6), layout="constrained")
    axes = figure.subplots()
    for measured in outcome.made:
        mean = np.mean([mean_losses(record.history) for record in measured.records], axis=0)
        look, label = _look(outcome, measured), measured.line.label
        axes.plot(range(1, len(mean) + 1), mean, ms=4, lw=1.4, label=label, **look)
    axes.set(xlabel="epoch", ylabel="training loss, mean over tasks")
    axes.locator_params(axis="x", integer=True)
    axes.set_title(_title(outcome), fontsize=11)
    axes.legend(frameon=False, fontsize=9)
    _tidy(axes)
    save_figure(figure, path)


# Tables as pictures: ours and the paper's, on one axis only where that is fair.


def draw_table(outcome: Outcome, path: Path) -> None:
    """Every line's number, one upright axis of lines for each column.

    Args:
        outcome: What was measured, line by line.
        path: The picture's file.
    """
    from matplotlib.figure import Figure

    columns = outcome.reproduction.columns
    sides = 1 if outcome.comparable else 2
    # Ours above the paper's, or beside it where there is one column only.
    down, across = (sides, len(columns)) if len(columns) > 1 else (1, sides)
    height = down * (1.4 + 0.34 * len(outcome.lines))
    figure = Figure(figsize=(3.4 * max(2, across), height), layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for place, column in enumerate(columns):
        # One and the same axes where the numbers may be compared.
        ours, paper = grid[place], grid[place + (sides - 1) * len(columns)]
        for y, measured in enumerate(outcome.lines):
            reported, _ = outcome.reproduction.reported(measured.line)
            _dot(ours, y, spread(measured.values(column.key)), _OURS, "o", "ours")
            _dot(paper, y, reported.get(column.key), _PAPER, "D", "paper")
        ours.set_xlabel(column.title if sides == 1 else f"{column.title}, ours")
        if sides == 2:
            paper.set_xlabel(f"{column.title}, paper")
    _label_lines(grid[0], outcome.lines)
    for axes in grid:
        _tidy(axes)
        axes.margins(x=0.12)
        axes.locator_params(axis="x", nbins=4)
    if sides == 1:
        handles, labels = grid[0].get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        figure.legend(unique.values(), unique, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(_title(outcome), fontsize=11)
    save_figure(figure, path)


def _dot(axes: Any, y: int, number: Reported | None, colour: str, marker: str, label: str) -> None:
    if number is not None:
        # Slightly apart, so that equal numbers do not hide one another.
        shift = 0.12 if label == "paper" else -0.12
        look = {"color": colour, "fmt": marker, "ms": 6, "capsize": 3, "label": label}
        axes.errorbar(number.mean, y + shift, xerr=number.deviation, **look)


def _label_lines(axes: Any, lines: Sequence[MeasuredLine]) -> None:
    axes.set_yticks(range(len(lines)), [measured.line.label for measured in lines])
    # Downwards, in the order of the table.
    axes.set_ylim(len(lines) - 0.5, -0.5)


def draw_sweep(outcome: Outcome, path: Path) -> None:
    """An ablation: one panel for each column, ours and the paper's apart.

    Args:
        outcome: What was measured, a line for each value of the setting.
        path: The picture's file.
    """
    from matplotlib.figure import Figure

    columns = outcome.reproduction.columns
    figure = Figure(figsize=(9.0, 3.6 * len(columns)), layout="constrained")
    grid = figure.subplots(len(columns), 2, squeeze=False)
    for (left, right), column in zip(grid, columns, strict=True):
        ours = {line.line.label: spread(line.values(column.key)) for line in outcome.lines}
        paper = {
            line.label: outcome.reproduction.reported(line)[0].get(column.key)
            for line in outcome.reproduction.lines
        }
        _sweep(left, ours, _OURS)
        left.set_title(f"ours ({outcome.plan.problem})", fontsize=10)
        _sweep(right, paper, _PAPER)
        right.set_title(f"paper ({outcome.reproduction.paper.problem})", fontsize=10)
        for axes in (left, right):
            axes.set_ylabel(column.title)
    # The panels name their problems themselves; ours need not be UTKFace.
    what = outcome.reproduction.what.removeprefix("Table: ").removesuffix(", on UTKFace")
    figure.suptitle(what, fontsize=11)
    save_figure(figure, path)


def _sweep(axes: Any, by_label: Mapping[str, Reported | None], colour: str) -> None:
    """Means and deviations in one panel; lines without a number are left out."""
    numbers = {label: number for label, number in by_label.items() if number}
    means = [number.mean for number in numbers.values()]
    spreads = [number.deviation or 0.0 for number in numbers.values()]
    axes.errorbar(range(len(means)), means, yerr=spreads, color=colour, marker="o", capsize=3)
    names = [re.sub(r" orthogonal regularisation| frozen$", "", label) for label in numbers]
    short = [name.removeprefix("frozen after ").removesuffix(" of the epochs") for name in names]
    axes.set_xticks(range(len(means)), short, fontsize=9)
    axes.margins(x=0.1, y=0.2)
    _tidy(axes)
