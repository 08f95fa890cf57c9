"""What the commands do, from Python: ``lp.train``, ``lp.open_run``, ``lp.compare``, ``lp.tune``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lorpman._files import as_path
from lorpman.errors import UsageError, check_kind, shown
from lorpman.front.front import Front
from lorpman.lab.compare import compare as compare_runs
from lorpman.lab.comparison_table import Comparison
from lorpman.lab.problems.own_problem import find_problem
from lorpman.lab.problems.problem import Problem
from lorpman.lab.runs import directory
from lorpman.lab.runs.spec import Scale, Spec
from lorpman.lab.runs.train import train as train_run
from lorpman.lab.sweep import Sweep
from lorpman.lab.tune import tune as run_study
from lorpman.lab.workers import Workers
from lorpman.manifold.base import Manifold
from lorpman.task import Task
from lorpman.training.progress import progress_stream


@dataclass(frozen=True, eq=False)
class Run:
    """A trained run: its manifold, its front, and what it was trained with."""

    path: Path
    """The run directory."""
    spec: Spec
    """Problem, method, seed and settings."""
    model: Manifold
    """With the trained weights, in evaluation mode."""
    front: Front
    """On the test split."""
    root: Path = field(repr=False)
    """Where datasets are."""

    @property
    def problem(self) -> Problem:
        """The problem that was trained."""
        return self.spec.problem

    @property
    def tasks(self) -> list[Task]:
        """The problem's tasks."""
        return self.spec.tasks()

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by name."""
        return self.spec.settings()

    def _repr_html_(self) -> str:
        return self.front._repr_html_()


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best settings that a search has found."""

    settings: dict[str, Any]
    """Those that were searched, to be passed to ``lp.train``."""
    hypervolume: float
    """On the validation split."""
    study: Any = field(repr=False)
    """The Optuna study."""


def train(
    problem: Problem | str,
    method: str = "lorpman",
    seed: int = 0,
    out: str | Path | None = None,
    *,
    data: str | Path | None = None,
    scale: Scale = "paper",
    recipe: str | None = None,
    resume: bool = False,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Train a problem with a method into a run directory, as ``lorpman train`` does.

    Args:
        problem: A problem, its name, or where it is: ``mine.py``, ``package.module:NAME``.
        method: Its name; see ``lorpman methods``.
        seed: Decides the network's start, the order of data and the preferences.
        out: The run directory; default: ``runs/PROBLEM-METHOD-SEED``.
        data: Where datasets are; default: LORPMAN_DATA, or a cache.
        scale: "laptop" for what a preset reduces on a small machine.
        recipe: The name of a recipe.
        resume: Continue the run that ``out`` holds.
        progress: Whether to show it on standard error.
        **settings: As ``epochs=3, rank=8``, over those of the problem.

    Returns:
        The run, with its model and its front.

    Raises:
        UsageError: If ``out`` holds something else, or problem, settings and data do not fit.
        TrainingDiverged: If a loss becomes NaN or infinite.
    """
    spec = Spec.make(problem, method, seed, settings, scale, recipe)
    default = f"runs/{spec.problem.name}-{method}-{seed}"
    path = as_path("out", default if out is None else out)
    root = _root(data)
    result = train_run(spec, path, root, resume=resume, progress=progress)
    return Run(path, spec, result.model.eval(), result.front, root)


def open_run(
    path: str | Path, problem: Problem | str | None = None, *, data: str | Path | None = None
) -> Run:
    """Open a run directory.

    A run never says which code to execute: a problem that is not built in has to be given.

    Args:
        path: The run directory.
        problem: What was trained, where that is not built in: a problem, or where it is.
        data: Where datasets are; default: LORPMAN_DATA, or a cache.

    Returns:
        The run, with its model in evaluation mode.

    Raises:
        UsageError: If it is no finished run, or of another problem.
    """
    folder = as_path("path", path)
    found = None if problem is None else find_problem(problem)
    spec, model = directory.open_run(folder, found)
    if not (folder / "front.json").exists():
        raise UsageError(f"{folder} has no front yet; end its training with resume=True")
    return Run(folder, spec, model, Front.load(folder / "front.json"), _root(data))


def compare(
    problem: Problem | str,
    methods: Sequence[str] = ("lorpman", "retrain"),
    seeds: Sequence[int] = (0, 1, 2),
    out: str | Path | None = None,
    *,
    data: str | Path | None = None,
    scale: Scale = "paper",
    recipe: str | None = None,
    isolate: bool = False,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: bool = True,
    **settings: Any,
) -> Comparison:
    """Train several methods on one problem, unless that is done, and make one table.

    Args:
        problem: A problem, its name, or where it is: ``mine.py``, ``package.module:NAME``.
        methods: Their names.
        seeds: Every method is trained once with each.
        out: Where the runs and the table go; default: ``runs/compare/PROBLEM``.
        data: Where datasets are; default: LORPMAN_DATA, or a cache.
        scale: "laptop" for what a preset reduces on a small machine.
        recipe: The name of a recipe, for all methods.
        isolate: Train each run in a process of its own, whose peak memory is its own.
        jobs: So many runs at a time on this machine, each in a process of its own.
        scheduler: The address of a Dask scheduler, whose workers train the runs instead.
        progress: Whether to show it on standard error.
        **settings: Each goes to every method that has it.

    Returns:
        The table; it shows itself in a notebook.

    Raises:
        UsageError: If something asked for does not exist, or every run failed.
    """
    found = find_problem(problem)
    folder = as_path("out", f"runs/compare/{found.name}" if out is None else out)
    for name, values in (("methods", methods), ("seeds", seeds)):
        if isinstance(values, str):
            raise UsageError(f"{name} must be a list, got {shown(values)}")
        check_kind(name, values, Sequence, "a list")
    return compare_runs(
        found,
        list(methods),
        list(seeds),
        folder,
        _root(data),
        scale=scale,
        recipe=recipe,
        overrides=settings,
        isolate=isolate,
        workers=Workers(jobs, scheduler),
        tell=_say(progress),
        live=progress,
    )


def tune(
    problem: Problem | str,
    method: str = "lorpman",
    trials: int = 20,
    search: Mapping[str, Sequence[Any]] | None = None,
    *,
    seed: int = 0,
    study: str | Path | None = None,
    data: str | Path | None = None,
    scale: Scale = "paper",
    recipe: str | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: bool = True,
    **settings: Any,
) -> Tuned:
    """Search settings for the best validation hypervolume, as ``lorpman tune`` does.

    Args:
        problem: A problem, its name, or where it is: ``mine.py``, ``package.module:NAME``.
        method: Its name.
        trials: How many finished ones the study shall have.
        search: The values to try, by setting; default: those of the problem's preset.
        seed: Of every trial.
        study: The file that keeps the study; default: ``runs/PROBLEM-METHOD.study``.
        data: Where datasets are; default: LORPMAN_DATA, or a cache.
        scale: "laptop" for what a preset reduces on a small machine.
        recipe: The name of a recipe.
        jobs: So many trials at a time on this machine, each in a process of its own.
        scheduler: The address of a Dask scheduler, whose workers do the trials instead.
        progress: Whether to show it on standard error.
        **settings: Those that all trials share.

    Returns:
        The best settings, and the whole study.

    Raises:
        UsageError: If there is nothing to search, or a value is not one that a run can have.
    """
    ranges = {} if search is None else search
    sweep = Sweep.make(problem, method, seed, settings, ranges, scale, recipe)
    default = f"runs/{sweep.problem.name}-{method}.study"
    file = as_path("study", default if study is None else study)
    tell = _say(progress)
    finished = run_study(
        sweep,
        trials,
        file,
        _root(data),
        tell or (lambda line: None),
        Workers(jobs, scheduler),
        tell=tell,
        live=progress,
    )
    best = finished.best_trial
    return Tuned(dict(best.params), float(best.value), finished)


def _root(data: str | Path | None) -> Path:
    return directory.data_root(None if data is None else as_path("data", data))


def _say(progress: bool) -> Callable[[str], None] | None:
    return (lambda line: print(line, file=progress_stream())) if progress else None
