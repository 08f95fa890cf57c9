"""The pictures of reproductions, in the layout of the paper's."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lorpman.front.front import Front
from lorpman.front.plot import plot_fronts
from lorpman.front.plot_style import COLOURS, MARKERS, axis_label, save_figure
from lorpman.lab.reproduce.number_format import spread
from lorpman.lab.reproduce.reproduction import Found, Reported, Row
from lorpman.lab.reproduce.similarity import plot_similarity


def _title(found: Found) -> str:
    """What is shown, at which scale; noise must never pass for data."""
    data = "GENERATED DATA, no quality claim" if found.generated else f"{found.scale} scale"
    return f"{found.plan.problem}, {data}"


def _look(found: Found, row: Row) -> dict[str, Any]:
    """Colour and marker of a line: the first ones for LORPMAN, wherever it stands."""
    lines = sorted(found.reproduction.lines, key=lambda line: line.method != "lorpman")
    k = lines.index(row.line)
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}


def draw_toy(found: Found, path: Path) -> None:
    """Trajectories in objective and in parameter space."""
    evidence = found.made[0].evidence[0]
    draw = evidence.spec.problem.figure
    assert draw is not None
    draw(evidence.notes, evidence.front, path)


def draw_similarity(found: Found, path: Path) -> None:
    """Similarity of PaMaL's members by layer and epoch."""
    plot_similarity([evidence.run for evidence in found.made[0].evidence], path)


def draw_fronts(found: Found, path: Path) -> None:
    """Two tasks: every seed, the front itself bold. More: the seed in the middle of each method."""
    if len(found.made[0].evidence[0].front.tasks) == 2:
        _draw_planes(found, path)
        return
    rows = sorted(found.made, key=lambda row: row.line.method != "lorpman")
    plot_fronts([_middle(row) for row in rows], path, _title(found))


def _middle(row: Row) -> Front:
    """The front of the middle seed stands for the line: all would hide one another."""
    ranked = sorted(row.evidence, key=lambda one: one.volume)
    return replace(ranked[(len(ranked) - 1) // 2].front, label=row.line.label)


def _draw_planes(found: Found, path: Path) -> None:
    """All points at the left; at the right the corner where most of the best are."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 5.2), layout="constrained")
    whole, near = figure.subplots(1, 2)
    for row in found.made:
        look = _look(found, row)
        joined = row.evidence[0].spec.method.kind == "continuous"
        for axes in (whole, near):
            for place, one in enumerate(row.evidence):
                label = row.line.label if place == 0 else None
                _draw_seed(axes, one.front, look, joined, label)
    fronts = [one.front for row in found.made for one in row.evidence]
    _zoom(near, fronts)
    for axes in (whole, near):
        axes.set(xlabel=axis_label(fronts[0], 0), ylabel=axis_label(fronts[0], 1))
        _tidy(axes)
    seeds = len(found.seeds)
    whole.set_title(f"{_title(found)}, {seeds} seed{'s' * (seeds > 1)}", fontsize=11)
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


def draw_losses(found: Found, path: Path) -> None:
    """Training loss, a mean over tasks, by epoch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.8, 4.6), layout="constrained")
    axes = figure.subplots()
    for row in found.made:
        mean = np.mean([one.losses for one in row.evidence], axis=0)
        look = _look(found, row)
        axes.plot(range(1, len(mean) + 1), mean, ms=4, lw=1.4, label=row.line.label, **look)
    axes.set(xlabel="epoch", ylabel="training loss, mean over tasks")
    axes.locator_params(axis="x", integer=True)
    axes.set_title(_title(found), fontsize=11)
    axes.legend(frameon=False, fontsize=9)
    _tidy(axes)
    save_figure(figure, path)


# Tables as pictures: ours and the paper's, on one axis only where that is fair.


def draw_table(found: Found, path: Path) -> None:
    """Every line's number, one upright axis of lines for each column."""
    from matplotlib.figure import Figure

    columns = found.reproduction.columns
    sides = 1 if found.comparable else 2
    # Ours above the paper's, or beside it where there is one column only.
    down, across = (sides, len(columns)) if len(columns) > 1 else (1, sides)
    height = down * (1.4 + 0.34 * len(found.rows))
    figure = Figure(figsize=(3.4 * max(2, across), height), layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    for place, column in enumerate(columns):
        ours, paper = grid[place], grid[place + (sides - 1) * len(columns)]
        for y, row in enumerate(found.rows):
            _dot(ours, y, spread(row.values.get(column.key, ())), "#0072B2", "o", "ours")
            _dot(paper, y, row.reported.get(column.key), "#D55E00", "D", "paper")
        ours.set_xlabel(column.title if sides == 1 else f"{column.title}, ours")
        if sides == 2:
            paper.set_xlabel(f"{column.title}, paper")
    _label_lines(grid[0], found.rows)
    for axes in grid:
        _tidy(axes)
        axes.margins(x=0.12)
        axes.locator_params(axis="x", nbins=4)
    if sides == 1:
        handles, labels = grid[0].get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        figure.legend(unique.values(), unique, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(_title(found), fontsize=11)
    save_figure(figure, path)


def _dot(axes: Any, y: int, number: Reported | None, colour: str, marker: str, label: str) -> None:
    if number is not None:
        # Slightly apart, so that equal numbers do not hide one another.
        shift = 0.12 if label == "paper" else -0.12
        look = {"color": colour, "fmt": marker, "ms": 6, "capsize": 3, "label": label}
        axes.errorbar(number.mean, y + shift, xerr=number.deviation, **look)


def _label_lines(axes: Any, rows: Sequence[Row]) -> None:
    axes.set_yticks(range(len(rows)), [row.line.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)


def draw_sweep(found: Found, path: Path) -> None:
    """An ablation: one panel for each column, ours and the paper's apart."""
    from matplotlib.figure import Figure

    columns = found.reproduction.columns
    figure = Figure(figsize=(9.0, 3.6 * len(columns)), layout="constrained")
    grid = figure.subplots(len(columns), 2, squeeze=False)
    sides = ("ours", found.plan.problem, "#0072B2"), ("paper", "utkface", "#D55E00")
    for axes_pair, column in zip(grid, columns, strict=True):
        for axes, (side, problem, colour) in zip(axes_pair, sides, strict=True):
            numbers = {
                row.line.label: number
                for row in found.rows
                if (
                    number := spread(row.values.get(column.key, ()))
                    if side == "ours"
                    else row.reported.get(column.key)
                )
            }
            _sweep(axes, numbers, colour)
            axes.set_title(f"{side} ({problem})", fontsize=10)
            axes.set_ylabel(column.title)
    what = found.reproduction.what.removeprefix("Table: ").removesuffix(", on UTKFace")
    figure.suptitle(what, fontsize=11)
    save_figure(figure, path)


def _sweep(axes: Any, numbers: dict[str, Reported], colour: str) -> None:
    means = [number.mean for number in numbers.values()]
    spreads = [number.deviation or 0.0 for number in numbers.values()]
    axes.errorbar(range(len(means)), means, yerr=spreads, color=colour, marker="o", capsize=3)
    names = [re.sub(r" orthogonal regularisation| frozen$", "", label) for label in numbers]
    short = [name.removeprefix("frozen after ").removesuffix(" of the epochs") for name in names]
    axes.set_xticks(range(len(means)), short, fontsize=9)
    axes.margins(x=0.1, y=0.2)
    _tidy(axes)
