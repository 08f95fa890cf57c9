"""The table of a comparison: one row per method, as people and as programs read it."""

import html
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lorpman._files import Kind, json_with, near_start
from lorpman.front.control import NO_TRADE_OFF, Control
from lorpman.front.notebook import html_picture, html_table

TABLE = Kind("a table", near_start(b"| method |", within=16), (".md",))
"""What people read."""
TABLE_DATA = Kind("the numbers of a table", json_with("problem", "rows"), (".json",))
"""What programs read."""
_HEAD = ["method", "hypervolume", "paper", "order", "violations", "parameters"]
_HEAD += ["epochs", "s / epoch", "memory"]
_CONTROL_HEAD = ["regret", "reach", "order on losses", "cost"]


@dataclass(frozen=True)
class MethodResults:
    """One row of a comparison: a method, over all its seeds."""

    method: str
    seeds: tuple[int, ...]
    """Those that were trained to the end."""
    hypervolumes: tuple[float, ...]
    """On the test split, by seed."""
    sampling_error: float
    """The largest standard error with which a hypervolume was sampled; 0 if exact."""
    parameters: int
    """How many numbers one run learns."""
    seconds_per_epoch: float
    """The mean over all epochs and seeds."""
    epochs: int
    """Of each run."""
    peak_memory: int
    """Bytes, the most over the seeds, libraries and data included."""
    order: float | None
    """Rank correlation between weights and scores, the mean over tasks and seeds; None for
    methods that take no preference."""
    violations: int
    """Pairs of preferences, over tasks and seeds, of which more weight scores worse."""
    pairs: int
    """Pairs of preferences, over tasks and seeds, with different weights."""
    published: float | None
    """What the paper reports, for this problem at full scale."""
    runs: tuple[str, ...]
    """The names of the run directories, by seed."""
    controls: tuple[Control, ...] = ()
    """What the runs give up against networks retrained with the same seed, where there are any."""
    cost: float | None = None
    """Training time over that of one plain network, where networks were retrained."""

    @property
    def mean(self) -> float:
        """The mean hypervolume over the seeds."""
        return statistics.fmean(self.hypervolumes)

    @property
    def deviation(self) -> float | None:
        """Standard deviation over seeds; None with one seed."""
        return statistics.stdev(self.hypervolumes) if len(self.hypervolumes) > 1 else None


@dataclass(frozen=True)
class Comparison:
    """The rows of a comparison, and why a run is missing.

    Args:
        problem: The name of the problem.
        scale: ``paper`` or ``laptop``; empty for a problem of one's own, which has no other.
        recipe: The recipe that all settings started from, if there was one.
        note: How the data differs from the official splits, if it does.
        rows: One per method, in the order asked for.
        compete: Whether retraining for one task alone gains anything; None where nothing was
            retrained.
        failures: For each run that failed, by the name of its directory, the reason.
        picture: The fronts, as a PNG, for notebooks.
    """

    problem: str
    scale: str
    recipe: str | None
    note: str
    rows: tuple[MethodResults, ...]
    failures: dict[str, str]
    compete: bool | None = None
    picture: bytes = field(default=b"", repr=False, compare=False)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Those of the row with most; a row that has others says so."""
        return max((row.seeds for row in self.rows), key=len)

    def markdown(self) -> str:
        """The table as people read it, with its caption and the failures below."""
        head = self._head()
        lines = [_line(head), _line(["---"] + ["---:"] * (len(head) - 1))]
        lines += [_line(self._cells(row)) for row in self.rows]
        lines += ["", self._caption()]
        lines += [f"- {run}: {reason}" for run, reason in self.failures.items()]
        return "\n".join(lines) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The table as programs read it."""
        rows = [
            asdict(row)
            | {"mean": row.mean, "deviation": row.deviation}
            | {"controls": [control.to_json() for control in row.controls]}
            for row in self.rows
        ]
        described = {**asdict(self), "rows": rows}
        del described["picture"]
        return described

    def _repr_html_(self) -> str:
        """The table and the picture, for a notebook."""
        table = html_table(self._head(), [self._cells(row) for row in self.rows])
        picture = html_picture(self.picture) if self.picture else ""
        below = [self._caption(), *(f"{run}: {why}" for run, why in self.failures.items())]
        return table + picture + "".join(f"<p>{html.escape(line)}</p>" for line in below)

    def _head(self) -> list[str]:
        return [*_HEAD, *(_CONTROL_HEAD if self._retrained() else [])]

    def _retrained(self) -> bool:
        return any(row.cost is not None for row in self.rows)

    def _cells(self, row: MethodResults) -> list[str]:
        deviation = "" if row.deviation is None else f" ± {row.deviation:.2g}"
        fewer_seeds = "" if row.seeds == self.seeds else f" ({_listed(row.seeds)} only)"
        return [
            row.method,
            _digits(row.mean) + deviation + fewer_seeds,
            "" if row.published is None else _digits(row.published),
            "" if row.order is None else f"{row.order:.2f}",
            "" if row.order is None else f"{row.violations} of {row.pairs}",
            f"{row.parameters:,}",
            str(row.epochs),
            f"{row.seconds_per_epoch:.3g}",
            f"{row.peak_memory / 2**20:,.0f} MiB",
            *(_control_cells(row) if self._retrained() else []),
        ]

    def _caption(self) -> str:
        parts = [
            f"{self.problem}, "
            + (f"{self.scale} scale, " if self.scale else "")
            + (f"recipe {self.recipe}, " if self.recipe else "")
            + "test split, "
            + ("mean ± standard deviation of " if len(self.seeds) > 1 else "")
            + _listed(self.seeds)
            + ";"
            + " every continuous front on the same preferences, corners included."
        ]
        if any(row.order is not None for row in self.rows):
            parts.append(
                "Order: the rank correlation between a task's weight and its score, 1 if more "
                "weight is always obeyed; violations: pairs of preferences where it is not."
            )
        if self._retrained():
            parts.append(
                "Against networks retrained for single preferences, with the same seeds and data: "
                "regret, the mean excess of the weighted test loss (below 0: better than "
                "retraining); reach, the mean gain in a task's score where all weight is on it; "
                "order on losses, as order, for test losses; cost, training time over that of one "
                "plain network."
            )
        if self.compete is False:
            parts.append(NO_TRADE_OFF)
        worst = max(row.sampling_error for row in self.rows)
        if worst:
            parts.append(f"Hypervolume is sampled, with a standard error of {worst:.1g} or less.")
        if self.note:
            parts.append(self.note)
        return " ".join(parts)


def _control_cells(row: MethodResults) -> list[str]:
    """Regret, reach, order on losses and cost; means over the seeds."""
    cost = "" if row.cost is None else f"{row.cost:.1f}"
    if not row.controls:
        return ["", "", "", cost]
    regrets = [control.regret for control in row.controls if control.regret is not None]
    reaches = [control.reach for control in row.controls if control.reach is not None]
    orders = [control.order_on_losses.correlation for control in row.controls]
    return [
        f"{statistics.fmean(regrets):+.1%}" if regrets else "",
        f"{statistics.fmean(reaches):+.4f}" if reaches else "",
        f"{statistics.fmean(orders):.2f}",
        cost,
    ]


def _listed(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _digits(value: float) -> str:
    return f"{value:.4f}" if value >= 0.01 else f"{value:.4g}"
