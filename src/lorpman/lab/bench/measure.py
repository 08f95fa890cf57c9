"""One run of the benchmark: every part after the other, none lost by another's failure."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from lorpman._files import write_json
from lorpman.errors import unknown
from lorpman.lab.bench.row import Outcome, Row, Skipped
from lorpman.lab.bench.study import Study, StudyOutcome
from lorpman.lab.bench.timing import Conditions

FORMAT = 1
RESULTS = "bench.json"
# More than this many other processes at work per core, and times are no longer our own.
_BUSY = 0.3


@dataclass
class Report:
    """What a run has found so far, and under which conditions."""

    conditions: Conditions
    load_before: tuple[float, float, float] = field(default_factory=os.getloadavg)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    outcomes: list[Outcome] = field(default_factory=list)
    studies: list[StudyOutcome] = field(default_factory=list)
    seconds: float = 0.0

    def failures(self) -> list[str]:
        """Names of the parts that did not run to their end."""
        parts: list[Outcome | StudyOutcome] = [*self.outcomes, *self.studies]
        return [part.name for part in parts if part.status == "failed"]

    def command(self) -> str:
        """What repeats this run."""
        quick = "--quick " if self.conditions.quick else ""
        return f"lorpman bench {quick}--threads {self.conditions.threads}"

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "command": self.command(),
            "started": self.started,
            "seconds": self.seconds,
            "quick": self.conditions.quick,
            "threads": self.conditions.threads,
            "clock": "processor time" if self.conditions.cpu_time else "wall time",
            "load": {"before": self.load_before, "after": os.getloadavg()},
            "machine": {
                "cores": os.cpu_count(),
                "system": platform.system(),
                "processor": _processor(),
            },
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("lorpman", "torch", "numpy")},
            },
            "rows": [outcome.as_json() for outcome in self.outcomes],
            "studies": [study.as_json() for study in self.studies],
        }


def run(
    rows: Sequence[Row],
    studies: Sequence[Study],
    conditions: Conditions,
    out: Path,
    tell: Callable[[str], None],
) -> Report:
    """Measure ``rows`` and ``studies``; what is found is written to ``out`` after each of them."""
    torch.set_num_threads(conditions.threads)
    report = Report(conditions)
    if busy := busy_machine(report.load_before[0], conditions):
        tell(busy)
    began = time.perf_counter()

    def keep() -> None:
        report.seconds = time.perf_counter() - began
        write_json(out / RESULTS, report.as_json())

    for row in rows:
        report.outcomes.append(outcome := measure(row, conditions))
        tell(f"{row.name}: {outcome.status}, {outcome.seconds:.0f} s")
        keep()
    for study in studies:
        report.studies.append(found := study.run(conditions))
        tell(f"{study.name}: {found.status}, {found.seconds:.0f} s")
        keep()
    return report


def measure(row: Row, conditions: Conditions) -> Outcome:
    """The outcome of one row, whatever happens in it."""
    began = time.perf_counter()
    try:
        measured = row.measure(conditions)
    except Skipped as reason:
        spent = time.perf_counter() - began
        return Outcome.without(row, "skipped", str(reason), reason.also, spent)
    except Exception as error:  # one row must not lose the others
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return Outcome.without(row, "failed", message, {}, time.perf_counter() - began)
    return Outcome.of(row, measured, time.perf_counter() - began)


def choose(only: str | None, names: Sequence[str]) -> list[str]:
    """The parts that ``--only`` names, in the order of the table; all if it is not given."""
    if only is None:
        return list(names)
    asked = [part.strip() for part in only.split(",")]
    for name in asked:
        if name not in names:
            raise unknown("row", name, names)
    return [name for name in names if name in asked]


def busy_machine(load: float, conditions: Conditions) -> str:
    """One line of warning if others are at work; else nothing."""
    cores = os.cpu_count() or 1
    if load <= _BUSY * cores:
        return ""
    said = f"the machine is busy (load {load:.1f} on {cores} cores): "
    if conditions.cpu_time:
        return said + "processor time suffers less than wall time, but quote only quiet runs"
    return said + "ratios will be off; wait, or pass --threads 1, which takes processor time"


def _processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
