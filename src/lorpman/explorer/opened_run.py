"""A run as the page sees it: its stored front and, where weights and data are there, its model."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lorpman.errors import NotFinite, UsageError
from lorpman.explorer.shown_input import Show
from lorpman.front.front import Front
from lorpman.front.select import is_finite
from lorpman.lab.datasets.splits import Splits
from lorpman.lab.problems.problem import Problem
from lorpman.lab.runs.directory import open_run, read_spec
from lorpman.lab.runs.epoch_log import parameters_learned, read_epoch_log
from lorpman.lab.runs.run_file import read_run_file
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold
from lorpman.task import Task

Mode = Literal["any", "members", "stored"]
Tell = Callable[[str], None]
"""Told a line about what is being done."""


def say_nothing(line: str) -> None:
    """Tell nobody: for callers who do not want to hear how far opening a run is.

    Args:
        line: What would be told.
    """
    del line


@dataclass(frozen=True)
class Origin:
    """What a model is of, and how it was trained, in words."""

    problem: str
    """The name of the problem."""
    summary: str
    """What the problem is, on one line; may be empty."""
    method: str
    method_summary: str
    """What the method is, on one line."""
    kind: str
    """``continuous``, ``discrete`` or ``single``: which networks there are."""
    title: str
    """What people call the run."""

    @classmethod
    def of(cls, spec: Spec) -> "Origin":
        """The words of a run that was trained from ``spec``.

        Args:
            spec: What was trained, and how.
        """
        problem, method = spec.problem, spec.method
        title = f"{method.name}, seed {spec.seed}"
        return cls(problem.name, problem.summary, method.name, method.summary, method.kind, title)


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """One run. Nothing in it changes after it was opened, so all requests may share it."""

    key: str
    """What the page calls it. A browser sends this back, and never learns a path to send."""
    path: Path | None
    """Its directory; None for a model that was never saved."""
    spec: Spec | None
    """Likewise."""
    origin: Origin
    """What it is of, in words."""
    tasks: Sequence[Task]
    """The problem's tasks."""
    show: Show | None
    """How the problem wants its inputs to be shown; None for the usual way."""
    front: Front
    """As stored: scores on the whole test split."""
    epochs: list[dict[str, Any]]
    """What was noted after every epoch, a line of ``metrics.jsonl`` each."""
    description: dict[str, Any]
    """What ``run.json`` holds."""
    model: Manifold | None
    """The trained manifold; None where its weights are not here."""
    splits: Splits | None
    """The data; None where it is not here, or was not asked for."""
    why_not_live: str
    """Why nothing can be evaluated live; empty where it can."""

    @property
    def mode(self) -> Mode:
        """Which preferences can be chosen: any, the members' own, or those of the stored front."""
        if self.model is None or self.splits is None:
            return "stored"
        return "members" if is_finite(self.model) else "any"

    @property
    def parameters(self) -> int:
        """How many numbers the run has learned."""
        return parameters_learned(self.description, self.epochs)

    @property
    def data_words(self) -> str:
        """What scores are on: the test data of a run, or what somebody gave with a model."""
        return "held-out test samples" if self.spec is not None else "given samples"

    @property
    def title(self) -> str:
        """What people call it: its method and its seed."""
        return self.origin.title


def open_runs(
    paths: Sequence[Path],
    root: Path | None,
    problem: Problem | None = None,
    tell: Tell = say_nothing,
) -> list[OpenedRun]:
    """Open runs of the same tasks; data that several of them use is loaded once.

    Args:
        paths: The directories of the runs.
        root: Where datasets are. Without it no data is loaded, and nothing can be evaluated.
        problem: What the runs were trained on, where that is not built in.
        tell: Told what is being done, before it is done.

    Returns:
        The runs, in the order of ``paths``.

    Raises:
        UsageError: If a directory holds no run or no front, or if the tasks of two runs differ.
            Missing weights or data are no error: such a run shows its stored front.
        NotFinite: If a run's weights hold NaN or infinity; it is a UsageError.
    """
    specs = [read_spec(path, problem) for path in paths]
    fronts = [_load_front(path) for path in paths]
    for path, front in zip(paths, fronts, strict=True):
        if not front.has_tasks_of(fronts[0]):
            raise UsageError(
                f"runs on one page must have the same tasks: {paths[0]} has "
                f"{_listed(fronts[0].tasks)}, {path} has {_listed(front.tasks)}"
            )
    # Errors too, so that data that is missing for many runs is looked for once.
    loaded: dict[str, Splits | UsageError] = {}
    keys = _name_runs(paths)
    return [
        _open(key, path, spec, front, root, loaded, tell)
        for key, path, spec, front in zip(keys, paths, specs, fronts, strict=True)
    ]


def _open(
    key: str,
    path: Path,
    spec: Spec,
    front: Front,
    root: Path | None,
    loaded: dict[str, Splits | UsageError],
    tell: Tell,
) -> OpenedRun:
    """Open one run; ``loaded`` holds the data of those opened before, and grows."""
    model, splits, why_not_live = None, None, ""
    try:
        if not (path / "checkpoint.safetensors").is_file():
            raise UsageError("its weights are not here (no checkpoint.safetensors)")
        tell(f"{key}: reading its weights")
        model = open_run(path, spec.problem)[1]
        data = None if root is None else _load_data(spec, root, loaded, tell)
        if isinstance(data, UsageError):
            raise UsageError(f"its data is not here ({data})")
        splits = data
    # A UsageError too, but weights that went wrong are not merely missing.
    except NotFinite:
        raise
    except UsageError as error:
        why_not_live = str(error)
    description = read_run_file(path).model_dump()
    epochs = _read_epochs(path)
    return OpenedRun(
        key=key,
        path=path,
        spec=spec,
        origin=Origin.of(spec),
        tasks=spec.tasks(),
        show=spec.problem.show,
        front=front,
        epochs=epochs,
        description=description,
        model=model,
        splits=splits,
        why_not_live=why_not_live,
    )


def _load_data(
    spec: Spec, root: Path, loaded: dict[str, Splits | UsageError], tell: Tell
) -> Splits | UsageError:
    """The splits of a problem, or why they cannot be had; the same question is asked once."""
    question = json.dumps([spec.problem.name, spec.data.model_dump(mode="json")])
    if question not in loaded:
        tell(f"{spec.problem.name}: loading its data")
        try:
            loaded[question] = spec.load(root)
        except UsageError as error:
            loaded[question] = error
    return loaded[question]


def _load_front(path: Path) -> Front:
    if not (path / "front.json").is_file():
        raise UsageError(
            f"{path} has no front yet; end its training with --resume, or run: "
            f"lorpman evaluate {path}"
        )
    return Front.load(path / "front.json")


def _read_epochs(path: Path) -> list[dict[str, Any]]:
    """What was noted after every epoch; a page is worth having without it."""
    try:
        return [note for note in read_epoch_log(path) if isinstance(note, dict)]
    except UsageError:
        return []


def _name_runs(paths: Sequence[Path]) -> list[str]:
    """A name for every path, and never the same for two.

    >>> _name_runs([Path("a/run"), Path("b/run"), Path("c")])
    ['run', 'run-2', 'c']
    """
    keys: list[str] = []
    for path in paths:
        name = path.resolve().name or "run"
        # Two directories may have one name; a third may already be called like the second.
        same = sum(key == name or key.startswith(f"{name}-") for key in keys)
        keys.append(name if not same else f"{name}-{same + 1}")
        while keys.count(keys[-1]) > 1:
            keys[-1] += "-again"
    return keys


def _listed(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:4]) + (" ..." if len(tasks) > 4 else "")
