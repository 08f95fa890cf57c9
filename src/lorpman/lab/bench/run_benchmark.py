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

from lorpman._files import Kind, json_with, write_json
from lorpman.errors import unknown
from lorpman.lab.bench.benchmark_row import BenchmarkRow, RowResult, Skipped
from lorpman.lab.bench.study import Study, StudyResult
from lorpman.lab.bench.timing import Conditions

FORMAT = 1
RESULTS = "bench.json"
_KIND = Kind("a benchmark", json_with("format", "machine"))
# More than this many other processes at work per core, and times are no longer our own.
_BUSY = 0.3


@dataclass
class BenchmarkReport:
    """What a run has found so far, and under which conditions."""

    conditions: Conditions
    """How everything is measured."""
    load_before: tuple[float, float, float] = field(default_factory=os.getloadavg)
    """The load of the machine before it began: means over 1, 5 and 15 minutes."""
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """When it began, in UTC."""
    rows: list[RowResult] = field(default_factory=list)
    """The rows that are done."""
    studies: list[StudyResult] = field(default_factory=list)
    """The studies that are done."""
    seconds: float = 0.0
    """How long it has taken so far."""

    def failures(self) -> list[str]:
        """Names of the parts that did not run to their end."""
        parts: list[RowResult | StudyResult] = [*self.rows, *self.studies]
        return [part.name for part in parts if part.status == "failed"]

    def command(self) -> str:
        """The command that repeats this run."""
        quick = "--quick " if self.conditions.quick else ""
        return f"lorpman bench {quick}--threads {self.conditions.threads}"

    def as_json(self) -> dict[str, Any]:
        """The whole run as plain values: conditions, machine, versions, and every part."""
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
            "rows": [row.as_json() for row in self.rows],
            "studies": [study.as_json() for study in self.studies],
        }


def run_benchmark(
    rows: Sequence[BenchmarkRow],
    studies: Sequence[Study],
    conditions: Conditions,
    out: Path,
    tell: Callable[[str], None],
) -> BenchmarkReport:
    """Measure rows and studies, one after the other.

    Args:
        rows: Those of the table.
        studies: What is looked at beside it.
        conditions: How everything is measured.
        out: The folder for ``bench.json``, which is written after each part.
        tell: Called with a line after each part.

    Returns:
        Everything that was found.
    """
    torch.set_num_threads(conditions.threads)
    report = BenchmarkReport(conditions)
    if busy := busy_machine(report.load_before[0], conditions):
        tell(busy)
    began = time.perf_counter()

    def finish(part: RowResult | StudyResult) -> None:
        tell(f"{part.name}: {part.status}, {part.seconds:.0f} s")
        report.seconds = time.perf_counter() - began
        # After each part, so that an interrupted run keeps what it has.
        write_json(out / RESULTS, report.as_json(), _KIND)

    for row in rows:
        report.rows.append(measure_row(row, conditions))
        finish(report.rows[-1])
    for study in studies:
        report.studies.append(study.run(conditions))
        finish(report.studies[-1])
    return report


def measure_row(row: BenchmarkRow, conditions: Conditions) -> RowResult:
    """Measure one row, whatever happens in it.

    Args:
        row: What to measure.
        conditions: How.

    Returns:
        The result; a failure is a result too, so that it does not lose the other rows.
    """
    began = time.perf_counter()
    try:
        measured = row.measure(conditions)
    except Skipped as reason:
        seconds = time.perf_counter() - began
        return RowResult.without(row, "skipped", str(reason), reason.also, seconds)
    except Exception as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return RowResult.without(row, "failed", message, {}, time.perf_counter() - began)
    return RowResult.of(row, measured, time.perf_counter() - began)


def choose_parts(only: str | None, names: Sequence[str]) -> list[str]:
    """Read ``--only``: which parts of the benchmark are asked for.

    Args:
        only: Names with commas between them; None for all.
        names: What there is, in the order of the table.

    Returns:
        The names that were asked for, in the order of the table.

    Raises:
        UsageError: If there is no part of such a name.
    """
    if only is None:
        return list(names)
    asked = [part.strip() for part in only.split(",")]
    for name in asked:
        if name not in names:
            raise unknown("row", name, names)
    return [name for name in names if name in asked]


def busy_machine(load: float, conditions: Conditions) -> str:
    """Warn if others are at work on the machine.

    Args:
        load: Processes that want a core, a mean over the last minute.
        conditions: They say which advice helps.

    Returns:
        One line; empty if the machine is quiet.
    """
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
