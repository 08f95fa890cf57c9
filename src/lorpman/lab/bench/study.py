"""A part of the benchmark without a target: something to look at rather than to meet."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lorpman.lab.bench.timing import Conditions


@dataclass(frozen=True)
class StudyResult:
    """A study after it was run; what it found is plain values, ready for JSON."""

    name: str
    what: str
    status: Literal["done", "failed"]
    """Whether it came to its end."""
    found: dict[str, Any] = field(default_factory=dict)
    """What it found, as JSON holds it."""
    note: str = ""
    """Why it failed, if it did."""
    seconds: float = 0.0
    """How long it took."""

    def as_json(self) -> dict[str, Any]:
        """All fields as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Study:
    """A name for ``--only``, what it looks at, and how."""

    name: str
    """What ``--only`` calls it."""
    what: str
    """What it looks at, for readers."""
    measure: Callable[[Conditions], dict[str, Any]]
    """Does it, and gives what JSON can hold."""

    def run(self, conditions: Conditions) -> StudyResult:
        """Run the study.

        Args:
            conditions: How it measures.

        Returns:
            What it found; a failure is a result too, so that it does not lose the other parts.
        """
        began = time.perf_counter()
        try:
            found = self.measure(conditions)
        except Exception as error:
            # On one line, as the table of results has it.
            note = " ".join(f"{type(error).__name__}: {error}".split())
            seconds = time.perf_counter() - began
            return StudyResult(self.name, self.what, "failed", {}, note, seconds)
        return StudyResult(self.name, self.what, "done", found, "", time.perf_counter() - began)
