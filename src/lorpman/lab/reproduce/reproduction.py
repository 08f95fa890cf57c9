"""What a reproduction is: one table or figure of the paper, and the runs that make it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lorpman._files import read_json
from lorpman.front.front import Front
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.runs.epoch_log import read_epoch_log
from lorpman.lab.runs.spec import Scale, Spec
from lorpman.lab.settings import format_assignments

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Reported:
    """A number as the paper prints it, with its standard deviation where it has one."""

    mean: float
    deviation: float | None = None


@dataclass(frozen=True)
class Line:
    """A line of the table: a method with settings, and what the paper reports for it."""

    label: str
    method: str
    paper: Settings | None = field(default_factory=dict)
    """On top of the preset at that scale; None where the line is not run at that scale."""
    laptop: Settings | None = field(default_factory=dict)
    reported: Mapping[str, Reported] | None = None
    """By the key of the column; None: what the problem's preset holds for the method."""
    parameters: float | None = None

    def settings(self, scale: Scale) -> Settings | None:
        return self.paper if scale == "paper" else self.laptop


@dataclass(frozen=True)
class Plan:
    """How much is done at one scale, and what that costs."""

    problem: str
    seeds: tuple[int, ...]
    reduction: str = ""
    """What is less than the paper's protocol, beyond the preset; empty if nothing is."""
    minutes: float | None = None
    """Of one thread, rounded up; None where it was never measured."""
    gibibytes: float | None = None
    """The peak memory of one run, rounded up."""


@dataclass(frozen=True, eq=False)
class Needed:
    """A run that a line is made from."""

    line: Line
    spec: Spec
    settings: Settings
    """Those that the line sets."""

    @property
    def name(self) -> str:
        """What its directory is called, if it has to be made."""
        return "-".join(
            [self.spec.method.name, *format_assignments(self.settings), str(self.spec.seed)]
        )


@dataclass(frozen=True, eq=False)
class Evidence:
    """One finished run, as columns and pictures see it."""

    run: Path
    needed: Needed
    front: Front
    root: Path
    """Where the data is, for what has to be measured with it."""

    @cached_property
    def notes(self) -> list[dict[str, Any]]:
        return read_epoch_log(self.run)

    @property
    def spec(self) -> Spec:
        return self.needed.spec

    @property
    def losses(self) -> list[float]:
        """The training loss of every epoch, a mean over tasks."""
        tables = [note["losses"].values() for note in self.notes if "losses" in note]
        return [sum(table) / len(table) for table in tables]

    @cached_property
    def volume(self) -> tuple[float, float]:
        """The hypervolume and its standard error, as stored: sampling takes seconds."""
        stored = read_json(self.run / "front.json", "front")["hypervolume"]
        return stored["value"], stored["stderr"]

    @property
    def seconds(self) -> float:
        return float(sum(note.get("seconds", 0.0) for note in self.notes))


@dataclass(frozen=True)
class Column:
    """A number that is measured in every run, and printed beside the paper's."""

    key: str
    title: str
    measure: Callable[[Evidence], float]
    split: str = "test"
    """Of which data it speaks."""


@dataclass(frozen=True, eq=False)
class Row:
    """A line with the runs that were found for it."""

    line: Line
    evidence: Sequence[Evidence]
    values: Mapping[str, tuple[float, ...]]
    """By the key of the column, one per run."""
    reported: Mapping[str, Reported]
    parameters_reported: float | None
    state: str = ""
    """Why there is no run, if there is none."""


@dataclass(frozen=True, eq=False)
class Found:
    """A reproduction that was made: what tables, files and pictures show."""

    reproduction: "Reproduction"
    scale: Scale
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    data_note: str
    generated: bool
    """The data is noise in the layout of the real files."""
    failures: Mapping[str, str]

    @property
    def plan(self) -> Plan:
        return self.reproduction.plan(self.scale)

    @property
    def reduction(self) -> str:
        """All that is less than the paper's protocol; empty if nothing is."""
        preset = get_problem(self.plan.problem).preset()
        asked, here = len(self.reproduction.paper.seeds), len(self.seeds)
        fewer = f"{here} seed{'s' * (here > 1)} instead of {asked}" if here < asked else ""
        parts = [self.plan.reduction, fewer]
        if self.scale == "laptop" and preset.laptop is not None:
            parts.append(preset.laptop.stated)
        if self.generated:
            parts.append(f"on generated files, {_NOISE_EPOCHS} epochs")
        return "; ".join(part for part in parts if part)

    @property
    def comparable(self) -> bool:
        """Whether the numbers may stand on one axis with the paper's."""
        same = self.plan.problem == self.reproduction.paper.problem
        reduced = self.scale == "laptop" and get_problem(self.plan.problem).preset().laptop
        return same and not (reduced or self.generated or self.data_note)

    @property
    def made(self) -> list[Row]:
        return [row for row in self.rows if row.evidence]


_NOISE_EPOCHS = 2


def _on_noise(problem: str, line: Line, settings: Settings, scale: Scale) -> Settings:
    """Noise has nothing to learn: two epochs, the second one frozen where the method freezes."""
    short: dict[str, Any] = {"epochs": _NOISE_EPOCHS}
    if "limit" in get_problem(problem).settings.model_fields:
        short["limit"] = None
    if Spec.make(problem, line.method, 0, settings, scale).training.freeze_epoch is not None:
        short["freeze_epoch"] = 1
    return short


@dataclass(frozen=True)
class Reproduction:
    """One row of the registry."""

    name: str
    what: str
    """Which table or figure of the paper it is, and of what."""
    lines: tuple[Line, ...]
    columns: tuple[Column, ...]
    draw: Callable[[Found, Path], None]
    paper: Plan
    laptop: Plan

    def plan(self, scale: Scale) -> Plan:
        return self.paper if scale == "paper" else self.laptop

    def needed(self, scale: Scale, seeds: Sequence[int], generated: bool = False) -> list[Needed]:
        """Every run that it is made from, at one scale; short ones on generated files."""
        problem = self.plan(scale).problem
        found = []
        for line in self.lines:
            if (settings := line.settings(scale)) is None:
                continue
            if generated:
                settings = {**settings, **_on_noise(problem, line, settings, scale)}
            found += [
                Needed(line, Spec.make(problem, line.method, seed, settings, scale), settings)
                for seed in seeds
            ]
        return found

    def reported(self, line: Line) -> tuple[Mapping[str, Reported], float | None]:
        """What the paper prints for a line: by the key of the column, and its parameters."""
        if line.reported is not None:
            return line.reported, line.parameters
        published = get_problem(self.paper.problem).preset().published.get(line.method)
        if published is None:
            return {}, None
        volume = Reported(published.hypervolume, published.deviation)
        return {"hypervolume": volume}, published.parameters
