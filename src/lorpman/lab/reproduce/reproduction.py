"""What a reproduction is: one table or figure of the paper, and the runs that it is made from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lorpman.front.front import Front
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.runs.epoch_log import read_epoch_log
from lorpman.lab.runs.spec import Scale, Spec
from lorpman.lab.settings import format_assignments

if TYPE_CHECKING:
    from lorpman.lab.reproduce.outcome import Outcome

Settings = Mapping[str, Any]
NOISE_EPOCHS = 2
"""Noise has nothing to learn."""


@dataclass(frozen=True)
class Reported:
    """A number as the paper prints it, with its standard deviation where it has one."""

    mean: float
    """Over the seeds."""
    deviation: float | None = None
    """None where the paper prints none."""


@dataclass(frozen=True)
class Line:
    """A line of the table: a method with settings, and what the paper reports for it."""

    label: str
    """What the table calls it."""
    method: str
    paper: Settings | None = field(default_factory=dict)
    """On top of the preset at that scale; None where the line is not run at that scale."""
    laptop: Settings | None = field(default_factory=dict)
    """The same for the laptop's scale."""
    reported: Mapping[str, Reported] | None = None
    """By the key of the column; None: what the problem's preset holds for the method."""
    parameters: float | None = None
    """How many the paper prints; None where it prints none."""

    def settings(self, scale: Scale) -> Settings | None:
        """What the line sets at one scale; None where it is not run at that scale.

        Args:
            scale: That of the protocol.
        """
        return self.paper if scale == "paper" else self.laptop


@dataclass(frozen=True)
class Plan:
    """How much is done at one scale, and what that costs."""

    problem: str
    """What is trained."""
    seeds: tuple[int, ...]
    """With which seeds, each once per line."""
    reduction: str = ""
    """What is less than the paper's protocol, beyond the preset; empty if nothing is."""
    minutes: float | None = None
    """Of one thread, rounded up; None where it was never measured."""
    gibibytes: float | None = None
    """The peak memory of one run, rounded up."""


# Compared by identity, as keys of dictionaries: settings cannot be hashed.
@dataclass(frozen=True, eq=False)
class PlannedRun:
    """A run that a line is made from, whether or not it is there already."""

    line: Line
    """The line that it belongs to."""
    spec: Spec
    """What is trained."""
    changes: Settings
    """The settings that the line sets on top of the preset."""

    @property
    def name(self) -> str:
        """What its directory is called, if it has to be made."""
        return "-".join(
            [self.spec.method.name, *format_assignments(self.changes), str(self.spec.seed)]
        )


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """The directory of a planned run that is trained: what columns measure."""

    directory: Path
    """Where it is."""
    planned: PlannedRun
    """What it was to be."""
    front: Front
    """Its test front."""
    data_root: Path
    """Where the data is, for what has to be measured with it."""

    @cached_property
    def notes(self) -> list[dict[str, Any]]:
        """What the run noted after every epoch."""
        return read_epoch_log(self.directory)

    @property
    def spec(self) -> Spec:
        """The settings that decide the run's numbers."""
        return self.planned.spec


@dataclass(frozen=True)
class Column:
    """A number that is measured in every run, and printed beside the paper's."""

    key: str
    """What it is called in JSON."""
    title: str
    """What the table calls it."""
    measure: Callable[[FinishedRun], float]
    """Takes the number from a run."""
    split: str = "test"
    """Of which data it speaks."""


@dataclass(frozen=True)
class Reproduction:
    """One row of the registry: a table or figure of the paper."""

    name: str
    """What ``lorpman reproduce`` calls it."""
    what: str
    """Which table or figure of the paper it is, and of what."""
    lines: tuple[Line, ...]
    """The lines of the table."""
    columns: tuple[Column, ...]
    """What is measured for each."""
    draw: "Callable[[Outcome, Path], None]"
    """Draws its picture into a file."""
    paper: Plan
    """How much is done at the paper's scale."""
    laptop: Plan
    """How much is done on a laptop."""
    history: str | None = None
    """The part of every epoch's note that ``draw`` shows, if it shows any."""

    def plan(self, scale: Scale) -> Plan:
        """How much is done at one scale.

        Args:
            scale: ``paper``, or ``laptop`` for a smaller one.
        """
        return self.paper if scale == "paper" else self.laptop

    def planned_runs(
        self, scale: Scale, seeds: Sequence[int], generated: bool = False
    ) -> list[PlannedRun]:
        """List every run that the table is made from.

        Args:
            scale: That of the protocol.
            seeds: One run of every line for each.
            generated: Whether the data is noise; then the runs are short.

        Returns:
            The runs, line by line; none of a line that is not run at this scale.
        """
        problem = self.plan(scale).problem
        planned = []
        for line in self.lines:
            if (changes := line.settings(scale)) is None:
                continue
            if generated:
                changes = {**changes, **_changes_for_noise(problem, line, changes, scale)}
            planned += [
                PlannedRun(line, Spec.make(problem, line.method, seed, changes, scale), changes)
                for seed in seeds
            ]
        return planned

    def reported(self, line: Line) -> tuple[Mapping[str, Reported], float | None]:
        """What the paper prints for a line.

        Args:
            line: One of this table.

        Returns:
            Its numbers by the key of the column, and its parameters; nothing where the paper has
            none.
        """
        if line.reported is not None:
            return line.reported, line.parameters
        published = get_problem(self.paper.problem).preset().published.get(line.method)
        if published is None:
            return {}, None
        volume = Reported(published.hypervolume, published.deviation)
        return {"hypervolume": volume}, published.parameters


def _changes_for_noise(problem: str, line: Line, changes: Settings, scale: Scale) -> Settings:
    """Two epochs, the second one frozen where the method freezes, on all of the few files."""
    short: dict[str, Any] = {"epochs": NOISE_EPOCHS}
    # The limit is meant for the real files: there are fewer generated ones.
    if "limit" in get_problem(problem).options.model_fields:
        short["limit"] = None
    if Spec.make(problem, line.method, 0, changes, scale).training.freeze_epoch is not None:
        short["freeze_epoch"] = 1
    return short
