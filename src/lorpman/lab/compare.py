"""Compare methods on one problem: train what is missing, then one table and one picture."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lorpman._files import write_bytes, write_json
from lorpman.errors import UsageError, unknown
from lorpman.front.control import Control, compete
from lorpman.front.front import Front
from lorpman.front.plot import plot_fronts
from lorpman.lab.beside_retraining import RETRAIN, control_of_run, retrained_fronts
from lorpman.lab.comparison_table import TABLE, TABLE_DATA, Comparison, MethodResults
from lorpman.lab.methods.registry import get_method
from lorpman.lab.problems.own_problem import find_problem
from lorpman.lab.problems.problem import Problem
from lorpman.lab.problems.registry import problem_names
from lorpman.lab.runs.directory import epochs_done, read_spec, same_source
from lorpman.lab.runs.epoch_log import parameters_learned, read_epoch_log
from lorpman.lab.runs.evaluation import evaluate_run, save_front
from lorpman.lab.runs.run_file import read_run_file
from lorpman.lab.runs.spec import Scale, Spec
from lorpman.lab.settings import TrainingSettings
from lorpman.lab.train_runs import train_runs
from lorpman.lab.workers import Workers
from lorpman.preference import grid


def compare(
    problem: str | Problem,
    methods: Sequence[str],
    seeds: Sequence[int],
    out: Path,
    root: Path,
    *,
    scale: Scale = "paper",
    recipe: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    isolate: bool = True,
    workers: Workers | None = None,
    tell: Callable[[str], None] | None = None,
    live: bool = False,
) -> Comparison:
    """Train every method with every seed into ``out``, unless it is there, and write the table.

    A run is found again by its settings, and continued if it was interrupted. A run that fails
    does not stop the others.

    Args:
        problem: What :func:`~lorpman.lab.problems.own_problem.find_problem` takes.
        methods: Names of methods.
        seeds: Every method is trained once with each.
        out: Where the run directories, ``comparison.md``, ``.json`` and ``.png`` go.
        root: The data directory.
        scale: ``laptop`` for the preset's stated reduction.
        recipe: The name of a recipe, for all methods.
        overrides: Settings; each goes to every method that has it.
        isolate: Give each run a process of its own, so that its peak memory is its own.
        workers: How many runs at once, and where; None for one after the other.
        tell: Told which run begins, ends or fails, and the time left; None for nobody.
        live: On a terminal, show a table that follows the runs instead.

    Returns:
        The table.

    Raises:
        UsageError: If something asked for does not exist, or every run failed.
    """
    specs = _specs(find_problem(problem), methods, seeds, scale, recipe, overrides or {})
    runs = {key: run_directory(out, spec) for key, spec in specs.items()}
    missing = {run: specs[key] for key, run in runs.items() if not _is_finished(run, specs[key])}
    failed = train_runs(missing, root, workers or Workers(), isolate=isolate, tell=tell, live=live)
    finished = {key: run for key, run in runs.items() if run not in failed}
    failures = {run.name: reason for run, reason in failed.items()}
    # Mostly one mistake, such as missing data, that stops them all: say it once.
    if not finished:
        raise UsageError(next(iter(failures.values())))
    return _summarise(specs, finished, failures, out, root, scale)


def _is_finished(run: Path, spec: Spec) -> bool:
    # A front alone can be that of a run that was looked at before its end.
    return (run / "front.json").exists() and epochs_done(run) >= spec.training.epochs


def _specs(
    problem: Problem,
    methods: Sequence[str],
    seeds: Sequence[int],
    scale: Scale,
    recipe: str | None,
    overrides: Mapping[str, Any],
) -> dict[tuple[str, int], Spec]:
    """All runs by method and seed, checked before the first one starts."""
    if not methods or not seeds:
        raise UsageError("compare needs at least one method and one seed")
    settings = {method: _settings_of(problem, method) for method in methods}
    every_setting = set().union(*settings.values())
    for key in overrides:
        if key not in every_setting:
            raise unknown("setting", key, every_setting)
    drawing = [method for method in methods if get_method(method).takes_sampling]
    for method in methods:
        # Methods with preferences of their own are compared without it. Where no method takes it,
        # it stays, so that the first one refuses it in words.
        if drawing and method not in drawing:
            settings[method] -= {"sampling", "corners"}
    return {
        (method, seed): Spec.make(
            problem,
            method,
            seed,
            {k: v for k, v in overrides.items() if k in settings[method]},
            scale,
            recipe,
        )
        for method in methods
        for seed in seeds
    }


def _settings_of(problem: Problem, method: str) -> set[str]:
    """The names of all settings that a run has."""
    groups = (TrainingSettings, get_method(method).settings, problem.options)
    return {key for group in groups for key in group.model_fields}


def run_directory(out: Path, spec: Spec) -> Path:
    """The directory of the run with these settings, or a free one for it.

    Args:
        out: The folder of all runs of a comparison.
        spec: The run.

    Returns:
        The directory in ``out`` that holds this run, or a free one with its name.
    """
    name = f"{spec.method.name}-{spec.seed}"
    for described in sorted(out.glob(f"{name}*/run.json")):
        # One that cannot be read, perhaps of another version, is another run.
        with suppress(UsageError):
            run = described.parent
            # Numbers of another version of the problem must not stand beside these.
            same = same_source(run, spec)
            if same and read_spec(run, spec.problem).identity() == spec.identity():
                return run
    number = 2
    run = out / name
    while run.exists():
        run, number = out / f"{name}-{number}", number + 1
    return run


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
    retrained = retrained_fronts(finished)
    rows, shown_fronts = [], []
    for method in dict.fromkeys(method for method, _ in finished):
        runs = {seed: run for (name, seed), run in finished.items() if name == method}
        fronts = [shared_front(specs[method, seed], run, root) for seed, run in runs.items()]
        controls = [
            control_of_run(specs[method, seed], run, retrained[seed], root)
            for seed, run in runs.items()
            if seed in retrained and specs[method, seed].method.kind == "continuous"
        ]
        rows.append(_results(specs[method, next(iter(runs))], runs, fronts, controls, scale))
        # The seed in the middle stands for the method: all of them would hide one another.
        ranked = sorted(fronts, key=lambda front: float(front.hypervolume()))
        shown_fronts.append(ranked[(len(ranked) - 1) // 2])
    note = first.load(root).note
    stated = scale if first.problem.name in problem_names() else ""
    comparison = Comparison(
        first.problem.name,
        stated,
        first.recipe,
        note,
        with_costs(rows, retrained),
        failures,
        compete(list(retrained.values())) if retrained else None,
    )
    write_bytes(out / "comparison.md", comparison.markdown().encode(), TABLE)
    write_json(out / "comparison.json", comparison.to_json(), TABLE_DATA)
    # Points of a discrete front must not be joined by a line.
    apart = [row.method for row in rows if get_method(row.method).kind != "continuous"]
    plot_fronts(shown_fronts, out / "comparison.png", first.problem.name, apart)
    return replace(comparison, picture=(out / "comparison.png").read_bytes())


def shared_front(spec: Spec, run: Path, root: Path) -> Front:
    """The test front of a finished run, comparable with those of other runs.

    Args:
        spec: The run's settings.
        run: Its directory.
        root: The data directory.

    Returns:
        The front; a continuous one on the preferences that all methods share, for which it is
        evaluated again (and saved) if it was on others.
    """
    front = Front.load(run / "front.json")
    shared = grid(len(front.tasks))
    if spec.method.kind == "continuous" and not torch.equal(front.alphas, shared):
        front = evaluate_run(run, "test", root, spec.problem)
        save_front(front, run, "test")
    return front


def _results(
    spec: Spec,
    runs: Mapping[int, Path],
    fronts: Sequence[Front],
    controls: Sequence[Control],
    scale: Scale,
) -> MethodResults:
    """One row of the table, from a method's runs by seed and their fronts."""
    epochs = [note for run in runs.values() for note in read_epoch_log(run) if "seconds" in note]
    volumes = [front.hypervolume() for front in fronts]
    orders = [front.order() for front in fronts] if spec.method.kind == "continuous" else []
    published = spec.problem.preset().published.get(spec.method.name)
    first = next(iter(runs.values()))
    return MethodResults(
        method=spec.method.name,
        seeds=tuple(runs),
        hypervolumes=tuple(float(volume) for volume in volumes),
        sampling_error=max(volume.stderr for volume in volumes),
        parameters=parameters_learned(read_run_file(first).model_dump(), read_epoch_log(first)),
        seconds_per_epoch=statistics.fmean(epoch["seconds"] for epoch in epochs),
        epochs=spec.training.epochs,
        peak_memory=max(epoch.get("peak_memory", 0) for epoch in epochs),
        order=statistics.fmean(order.correlation for order in orders) if orders else None,
        violations=sum(order.violations for order in orders),
        pairs=sum(order.pairs for order in orders),
        # Beside a reduced run, the paper's number would invite a comparison that means nothing.
        published=published.hypervolume if published and scale == "paper" else None,
        runs=tuple(run.name for run in runs.values()),
        controls=tuple(controls),
    )


def with_costs(
    rows: Sequence[MethodResults], retrained: Mapping[int, Front]
) -> tuple[MethodResults, ...]:
    """The rows with their training time over that of one plain network.

    Args:
        rows: One per method.
        retrained: The fronts of the retrained networks by seed; without any there is no measure.

    Returns:
        The rows, with costs where a network was retrained.
    """
    theirs = next((row for row in rows if row.method == RETRAIN), None)
    if theirs is None:
        return tuple(rows)
    # They were trained side by side, so one of them had its share of the time.
    members = len(next(iter(retrained.values())))
    one_network = theirs.seconds_per_epoch * theirs.epochs / members
    return tuple(
        replace(row, cost=row.seconds_per_epoch * row.epochs / one_network) for row in rows
    )
