"""Run directories: which one may be written, what stands in it, and how it is opened again."""

import os
import platform
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from lorpman._files import owning, write_json
from lorpman.errors import UsageError, UserNotice
from lorpman.lab.problems.problem import Problem
from lorpman.lab.problems.registry import get_problem, problem_names
from lorpman.lab.runs.run_file import FORMAT, KIND, RunFile, read_run_file
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.training import checkpoint as checkpoints
from lorpman.training.devices import Engine
from lorpman.training.state import load_weights


class ProblemChangedWarning(UserNotice):
    """The file of a run's problem is not what it was."""


def data_root(data: Path | None) -> Path:
    """Where datasets are: as told, else LORPMAN_DATA, else a cache directory.

    Args:
        data: What ``--data`` says; None if it was not given.
    """
    if data is not None:
        return data
    if "LORPMAN_DATA" in os.environ:
        return Path(os.environ["LORPMAN_DATA"])
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(cache).expanduser() / "lorpman" / "data"


def epochs_done(run: Path) -> int:
    """How many epochs of a run are saved; 0 if there is no checkpoint.

    Args:
        run: The run directory.
    """
    return checkpoints.epochs_done(run / "checkpoint.safetensors")


def open_run(run: Path, problem: Problem | None = None) -> tuple[Spec, Manifold]:
    """The settings of a run directory, and its manifold with the trained weights.

    Args:
        run: The run directory.
        problem: What was trained, where that is not built in.

    Returns:
        The run's description, and the manifold in evaluation mode.

    Raises:
        UsageError: If it is no run directory, or its checkpoint is missing or damaged.
    """
    spec = read_spec(run, problem)
    model = spec.build()
    path = run / "checkpoint.safetensors"
    load_weights(model, checkpoints.load_model(path), path)
    return spec, model.eval()


def read_spec(run: Path, problem: Problem | None = None) -> Spec:
    """The settings of a run directory.

    A run says the name of its problem, and never which code to execute: that of a problem which
    is not built in has to be given. Where its file is not what it was, a warning says so.

    Args:
        run: The run directory.
        problem: What was trained, where that is not built in.

    Raises:
        UsageError: If it is none, was written by another version, or is of another problem.
    """
    if not os.path.isdir(run):  # noqa: PTH112 (Path.is_dir raises for long names)
        raise UsageError(f"no run directory at {run}; train one with: lorpman train PROBLEM")
    described = read_run_file(run)
    return Spec.make(
        _problem_of(run, described, problem),
        described.method,
        described.seed,
        described.settings,
        described.scale,
    )


def _problem_of(run: Path, described: RunFile, given: Problem | None) -> Problem:
    name = described.problem
    if given is None:
        if name not in problem_names():
            raise UsageError(
                f"{run} was trained on the problem '{name}', which is not built in; say where it "
                "is: --problem FILE.py"
            )
        return get_problem(name)
    if given.name != name:
        raise UsageError(f"{run} was trained on the problem '{name}', not on '{given.name}'")
    # Old runs have no hash to compare with.
    before = described.source or given.source
    if before != given.source:
        warnings.warn(
            f"the file of problem '{name}' has changed since {run} was trained",
            ProblemChangedWarning,
            # Here, wherever it was opened from: it is said once.
            stacklevel=1,
        )
    return given


def same_source(run: Path, spec: Spec) -> bool:
    """Whether the file of a run's problem is what it was when it was trained.

    Args:
        run: The directory of the run.
        spec: The run with the problem as it is now.
    """
    return (read_run_file(run).source or "") == spec.problem.source


def check_free(out: Path, spec: Spec, engine: Engine, resume: bool) -> None:
    """Refuse a directory that holds something else than this run, without touching it.

    Args:
        out: The directory; it need not be there.
        spec: The run that is to be trained into it.
        engine: On what.
        resume: Whether it may hold this run already.

    Raises:
        UsageError: If something else is there, or nothing can be written there.
    """
    existing = out / "run.json"
    try:
        there, empty = existing.exists(), not (out.is_dir() and any(out.iterdir()))
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None
    if not there:
        if not empty:
            raise UsageError(f"{out} is not empty and holds no run; choose another --out")
    elif not resume:
        raise UsageError(
            f"{out} already holds a run; pass --resume to continue it, or another --out"
        )
    elif read_spec(out, spec.problem).identity() != spec.identity():
        raise UsageError(
            f"{out} holds a run with other settings; resume it with the settings in {existing}"
        )
    elif (before := _engine_of(out, engine)) != engine.described():
        raise UsageError(f"{out} was trained with other devices or precision: {before}")


def _engine_of(run: Path, engine: Engine) -> dict[str, Any]:
    """What a run was trained on; runs from before there was a setting have its default."""
    facts = read_run_file(run).engine
    return engine.described() if facts is None else facts.model_dump()


@contextmanager
def made_directory(out: Path) -> Iterator[None]:
    """Make the directory of a run, and those above it; those that stay empty go again.

    Args:
        out: The directory.

    Raises:
        UsageError: If it cannot be made.
    """
    try:
        # The innermost first, which is the order in which they can go again.
        made = [folder for folder in (out, *out.parents) if not folder.exists()]
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None
    try:
        yield
    finally:
        with suppress(OSError):  # one that is not empty, and so all above it
            for folder in made:
                folder.rmdir()


@contextmanager
def claimed(out: Path, spec: Spec, model: Manifold, engine: Engine) -> Iterator[None]:
    """Make ``out`` this run's directory, for what is trained inside this context.

    Writes ``run.json``, unless the run is resumed. A new run that fails before its first
    checkpoint leaves nothing behind.

    Args:
        out: The directory, locked, so that no other training writes into it.
        spec: The run.
        model: Its manifold.
        engine: What it is trained on.

    Raises:
        UsageError: If ``run.json`` cannot be written.
    """
    # safetensors writes to temporary names of its own, which a kill leaves behind.
    for leftover in out.glob(".tmp??????"):
        leftover.unlink(missing_ok=True)
    new = not (out / "run.json").exists()
    try:
        with owning(out):
            if new:
                _describe(out, spec, model, engine)
            yield
    # Ctrl-C too leaves nothing behind; what has a checkpoint stays, since it can be resumed.
    except BaseException:
        if new and not checkpoints.exists(out / "checkpoint.safetensors"):
            _empty(out)
        raise


def _empty(out: Path) -> None:
    """Remove what a failed training wrote; :func:`check_free` has found the directory empty."""
    for path in out.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)  # of a logger
        else:
            path.unlink(missing_ok=True)


def _describe(out: Path, spec: Spec, model: Manifold, engine: Engine) -> None:
    facts = {
        "format": FORMAT,
        **spec.described(),
        "scale": spec.scale,
        "recipe": spec.recipe,
        "source": spec.problem.source,
        **_provenance(model, engine),
    }
    write_json(out / "run.json", facts, KIND)


def _provenance(model: Manifold, engine: Engine) -> dict[str, Any]:
    """With what a run was made: numbers may differ between versions and machines."""
    packages = ("lorpman", "torch", "lightning-fabric", "moocore", "numpy")
    return {
        "parameters": model.num_parameters(),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "engine": engine.described(),
        "threads": torch.get_num_threads(),
    }
