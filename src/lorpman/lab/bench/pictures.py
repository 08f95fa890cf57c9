"""Pictures of a run, drawn from its JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorpman.front.plot_style import save_figure
from lorpman.lab.bench.table import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's blue and vermilion: colour-blind readers tell them apart.
_MET, _MISSED, _GREY = "#0072B2", "#D55E00", "0.6"


def draw_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """One bar per measured row: its value as a part of what it may be.

    Args:
        rows: The rows of a run's JSON.
        path: The file.
    """
    from matplotlib.figure import Figure

    shown = [row for row in rows if row["value"] is not None]
    figure = Figure(figsize=(8.0, 1.2 + 0.42 * max(len(shown), 1)), layout="constrained")
    axes: Any = figure.subplots()
    for place, row in enumerate(shown):
        part = row["value"] / row["target"]
        axes.barh(place, part, color=_MET if row["status"] == "met" else _MISSED, height=0.6)
        value, target = (format_number(row[key], row["unit"]) for key in ("value", "target"))
        said = f"{value} of {target}"
        # On white, since the line of the target may pass behind it.
        white = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(part + 0.02, place, said, va="center", fontsize=8, bbox=white)
    axes.set_yticks(range(len(shown)), [row["name"] for row in shown])
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", lw=1)
    axes.set_xlim(0, max([1.4, *(row["value"] / row["target"] + 0.5 for row in shown)]))
    axes.set_xlabel("measured, as a part of the most it may be (line)")
    axes.spines[["top", "right"]].set_visible(False)
    save_figure(figure, path)


def draw_growth(study: Mapping[str, Any], path: Path) -> None:
    """Time above and memory below, against m, r and b, with what the formulas say.

    Args:
        study: What :func:`~lorpman.lab.bench.growth_study.growth` gave.
        path: The file.
    """
    from matplotlib.figure import Figure

    from lorpman.lab.bench.growth_study import NAMES

    axes_names = list(study["axes"])
    figure = Figure(figsize=(11.0, 6.4), layout="constrained")
    grid = figure.subplots(2, len(axes_names), squeeze=False)
    for column, axis in enumerate(axes_names):
        points = study["axes"][axis]
        _growth_lines(grid[0][column], points, axis, "seconds", 1e3)
        _growth_lines(grid[1][column], points, axis, "bytes", 2**-20)
        grid[1][column].set_xlabel(NAMES[axis])
    grid[0][0].set_ylabel("milliseconds of a step")
    grid[1][0].set_ylabel("MiB at the peak of a step")
    grid[0][0].legend(frameon=False, fontsize=8)
    base = ", ".join(f"{axis}={value}" for axis, value in study["base"].items())
    figure.suptitle(f"Growth of a LORPMAN step ({study['network']}; otherwise {base})", fontsize=11)
    save_figure(figure, path)


def _growth_lines(
    axes: "Axes", points: Sequence[Mapping[str, Any]], axis: str, what: str, unit: float
) -> None:
    from matplotlib.ticker import LogLocator

    at = [point[axis] for point in points]
    axes.plot(at, [unit * p[f"expected {what}"] for p in points], color=_GREY, label="the formula")
    axes.plot(at, [unit * p[what] for p in points], "o", color=_MET, label="measured")
    if what == "seconds":
        plain = [unit * p["plain seconds"] for p in points]
        axes.plot(at, plain, ":", color=_MISSED, label="b plain passes")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(at, [str(value) for value in at])
    low, high = axes.get_ylim()
    # Within one octave there would be no tick at the powers of two alone.
    between = (1.0, 1.25, 1.5, 1.75) if high < 4 * low else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(base=2, subs=between, numticks=8))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.spines[["top", "right"]].set_visible(False)


def draw(described: Mapping[str, Any], out: Path) -> list[Path]:
    """Draw every picture that a run's JSON has the numbers for.

    Args:
        described: The JSON.
        out: The folder.

    Returns:
        The files.
    """
    drawn = []
    if any(row["value"] is not None for row in described["rows"]):
        draw_rows(described["rows"], out / "bench.png")
        drawn.append(out / "bench.png")
    for study in described["studies"]:
        if study["name"] == "growth" and study["status"] == "done":
            draw_growth(study["found"], out / "growth.png")
            drawn.append(out / "growth.png")
    return drawn
