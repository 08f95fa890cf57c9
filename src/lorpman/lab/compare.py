"""Compare methods on one problem: train what is missing, then one table and one picture."""

import os
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch

from lorpman._files import read_json, write_bytes, write_json
from lorpman.errors import TrainingDiverged, UsageError, unknown
from lorpman.front.front import Front
from lorpman.front.plot import plot_fronts
from lorpman.lab.methods.registry import get_method
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.runs.directory import epochs_done, read_spec
from lorpman.lab.runs.epoch_log import parameters_learned, read_notes
from lorpman.lab.runs.evaluation import evaluate_run, save_front
from lorpman.lab.runs.spec import Scale, Spec
from lorpman.lab.runs.train import train
from lorpman.lab.settings import Training
from lorpman.preference import grid


@dataclass(frozen=True)
class Row:
    """One method of a comparison, over all its seeds."""

    method: str
    seeds: tuple[int, ...]
    hypervolumes: tuple[float, ...]
    """On the test split, by seed."""
    sampling_error: float
    """The largest standard error with which a hypervolume was sampled; 0 if exact."""
    parameters: int
    seconds_per_epoch: float
    epochs: int
    peak_memory: int
    """Bytes, the most over the seeds, libraries and data included."""
    order: float | None
    """Rank correlation between weights and scores, the mean over tasks and seeds; None for
    methods that take no preference."""
    violations: int
    """Pairs of preferences, over tasks and seeds, of which more weight scores worse."""
    pairs: int
    published: float | None
    """What the paper reports, for this problem at full scale."""
    runs: tuple[str, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.hypervolumes)

    @property
    def deviation(self) -> float | None:
        """Standard deviation over seeds; None with one seed."""
        return statistics.stdev(self.hypervolumes) if len(self.hypervolumes) > 1 else None


@dataclass(frozen=True)
class Comparison:
    """Rows, and why a run has none."""

    problem: str
    scale: str
    recipe: str | None
    note: str
    rows: tuple[Row, ...]
    failures: dict[str, str]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Those of the row with most; a row that has others says so."""
        return max((row.seeds for row in self.rows), key=len)

    def markdown(self) -> str:
        """The table as people read it."""
        head = ["method", "hypervolume", "paper", "order", "violations", "parameters"]
        head += ["epochs", "s / epoch", "memory"]
        lines = [_line(head), _line(["---"] + ["---:"] * (len(head) - 1))]
        for row in self.rows:
            deviation = "" if row.deviation is None else f" ± {row.deviation:.2g}"
            paper = "" if row.published is None else _digits(row.published)
            order = "" if row.order is None else f"{row.order:.2f}"
            violations = "" if row.order is None else f"{row.violations} of {row.pairs}"
            fewer = "" if row.seeds == self.seeds else f" ({_listed(row.seeds)} only)"
            cells = [row.method, _digits(row.mean) + deviation + fewer, paper, order, violations]
            cells += [f"{row.parameters:,}", str(row.epochs), f"{row.seconds_per_epoch:.3g}"]
            lines.append(_line([*cells, f"{row.peak_memory / 2**20:,.0f} MiB"]))
        lines += ["", self._caption()]
        lines += [f"- {run}: {reason}" for run, reason in self.failures.items()]
        return "\n".join(lines) + "\n"

    def _caption(self) -> str:
        parts = [
            f"{self.problem}, {self.scale} scale, "
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
        worst = max(row.sampling_error for row in self.rows)
        if worst:
            parts.append(f"Hypervolume is sampled, with a standard error of {worst:.1g} or less.")
        if self.note:
            parts.append(self.note)
        return " ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The table as programs read it."""
        rows = [asdict(row) | {"mean": row.mean, "deviation": row.deviation} for row in self.rows]
        return {**asdict(self), "rows": rows}


def compare(
    problem: str,
    methods: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    root: Path,
    *,
    scale: Scale = "paper",
    recipe: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    isolate: bool = True,
    tell: Callable[[str], None] | None = None,
) -> Comparison:
    """Train every method with every seed into ``out``, unless it is there, and write the table.

    A run is found again by its settings, and continued if it was interrupted. Each has a process
    of its own (``isolate``), so that its peak memory is its own. A run that fails does not stop
    the others. ``overrides`` go to every method that has such a setting; ``tell`` is told which
    run begins.
    """
    specs = _specs(problem, methods, seeds, scale, recipe, overrides or {})
    say = tell or (lambda line: None)
    finished: dict[tuple[str, int], Path] = {}
    failures: dict[str, str] = {}
    for place, (key, spec) in enumerate(specs.items(), start=1):
        run = run_directory(out, spec)
        # A front alone can be that of a run that was looked at before its end.
        if not (run / "front.json").exists() or epochs_done(run) < spec.training.epochs:
            say(f"{run} ({place} of {len(specs)})")
            reason = attempt(spec, run, root, isolate, progress=tell is not None)
            if reason is not None:
                failures[run.name] = reason
                say(f"{run} failed: {reason}")
                continue
        finished[key] = run
    if not finished:
        raise UsageError(next(iter(failures.values())))
    return _summarise(specs, finished, failures, out, root, scale)


def _specs(
    problem: str, methods: Sequence[str], seeds: Sequence[int], scale: Scale,
    recipe: str | None, overrides: Mapping[str, Any],
) -> dict[tuple[str, int], Spec]:  # fmt: skip
    """All runs, checked before the first one starts."""
    if not methods or not seeds:
        raise UsageError("compare needs at least one method and one seed")
    fields = {
        method: {
            key
            for group in (Training, get_method(method).settings, get_problem(problem).settings)
            for key in group.model_fields
        }
        for method in methods
    }
    everything = set().union(*fields.values())
    for key in overrides:
        if key not in everything:
            raise unknown("setting", key, everything)
    drawing = [method for method in methods if get_method(method).takes_sampling]
    for method in methods:
        # Where no method takes it, the first one says so.
        if drawing and method not in drawing:
            fields[method].discard("sampling")
    return {
        (method, seed): Spec.make(
            problem,
            method,
            seed,
            {k: v for k, v in overrides.items() if k in fields[method]},
            scale,
            recipe,
        )
        for method in methods
        for seed in seeds
    }


def run_directory(out: Path, spec: Spec) -> Path:
    """The directory in ``out`` that holds this run, or a free one with its name."""
    name = f"{spec.method.name}-{spec.seed}"
    for described in sorted(out.glob(f"{name}*/run.json")):
        # One that cannot be read, perhaps of another version, is another run.
        with suppress(UsageError):
            if read_spec(described.parent).identity() == spec.identity():
                return described.parent
    number = 2
    run = out / name
    while run.exists():
        run, number = out / f"{name}-{number}", number + 1
    return run


def attempt(spec: Spec, run: Path, root: Path, isolate: bool, progress: bool) -> str | None:
    """Train or continue one run; why it failed, if it did."""
    arguments = (
        spec.described(),
        spec.scale,
        spec.recipe,
        run,
        root,
        progress,
        torch.get_num_threads(),
    )
    try:
        if not isolate:
            _train(*arguments)
        else:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                pool.submit(_train, *arguments).result()
    except (UsageError, TrainingDiverged) as error:
        return str(error)
    except BrokenProcessPool:
        return "its process died, perhaps for lack of memory"
    return None


def _train(
    described: dict[str, Any],
    scale: Scale,
    recipe: str | None,
    run: Path,
    root: Path,
    progress: bool,
    threads: int,
) -> None:
    torch.set_num_threads(threads)
    if parent_process() is not None:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    problem, method, seed = (described[key] for key in ("problem", "method", "seed"))
    spec = Spec.make(problem, method, seed, described["settings"], scale, recipe)
    train(spec, run, root, resume=True, progress=progress)


def _end_with_parent() -> None:
    """Stop training once nobody waits for it any more, rather than use up the machine."""
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    # At once: the last checkpoint is whole, and starting again goes on from it.
    os._exit(1)


def _summarise(
    specs: Mapping[tuple[str, int], Spec],
    finished: Mapping[tuple[str, int], Path],
    failures: dict[str, str],
    out: Path,
    root: Path,
    scale: Scale,
) -> Comparison:
    """Read the finished runs; write the table and the picture."""
    first = next(iter(specs.values()))
    rows, shown = [], []
    for method in dict.fromkeys(method for method, _ in finished):
        runs = {seed: run for (name, seed), run in finished.items() if name == method}
        fronts = [shared_front(specs[method, seed], run, root) for seed, run in runs.items()]
        rows.append(_row(specs[method, next(iter(runs))], runs, fronts, scale))
        # The seed in the middle stands for the method: all of them would hide one another.
        ranked = sorted(fronts, key=lambda front: float(front.hypervolume()))
        shown.append(ranked[(len(ranked) - 1) // 2])
    note = first.load(root).note
    comparison = Comparison(first.problem.name, scale, first.recipe, note, tuple(rows), failures)
    write_bytes(out / "comparison.md", comparison.markdown().encode())
    write_json(out / "comparison.json", comparison.to_json())
    apart = [row.method for row in rows if get_method(row.method).kind != "continuous"]
    plot_fronts(shown, out / "comparison.png", first.problem.name, apart)
    return comparison


def shared_front(spec: Spec, run: Path, root: Path) -> Front:
    """The test front of a run; a continuous one on the preferences that all share."""
    front = Front.load(run / "front.json")
    shared = grid(len(front.tasks))
    if spec.method.kind == "continuous" and not torch.equal(front.alphas, shared):
        front = evaluate_run(run, "test", root)
        save_front(front, run, "test")
    return front


def _row(spec: Spec, runs: Mapping[int, Path], fronts: Sequence[Front], scale: Scale) -> Row:
    notes = [note for run in runs.values() for note in read_notes(run) if "seconds" in note]
    volumes = [front.hypervolume() for front in fronts]
    orders = [front.order() for front in fronts] if spec.method.kind == "continuous" else []
    published = spec.problem.preset().published.get(spec.method.name)
    first = next(iter(runs.values()))
    return Row(
        method=spec.method.name,
        seeds=tuple(runs),
        hypervolumes=tuple(float(volume) for volume in volumes),
        sampling_error=max(volume.stderr for volume in volumes),
        parameters=parameters_learned(read_json(first / "run.json", "run"), read_notes(first)),
        seconds_per_epoch=statistics.fmean(note["seconds"] for note in notes),
        epochs=spec.training.epochs,
        peak_memory=max(note.get("peak_memory", 0) for note in notes),
        order=statistics.fmean(order.correlation for order in orders) if orders else None,
        violations=sum(order.violations for order in orders),
        pairs=sum(order.pairs for order in orders),
        published=published.hypervolume if published and scale == "paper" else None,
        runs=tuple(run.name for run in runs.values()),
    )


def _listed(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _digits(value: float) -> str:
    return f"{value:.4f}" if value >= 0.01 else f"{value:.4g}"
