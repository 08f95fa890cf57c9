"""A run as a page sees it: its stored front, and, where weights and data are there, its model."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lorpman._files import read_json
from lorpman.errors import UsageError
from lorpman.front.front import Front
from lorpman.front.select import is_finite
from lorpman.lab.datasets.splits import Splits
from lorpman.lab.runs.directory import open_run, read_spec
from lorpman.lab.runs.epoch_log import parameters_learned, read_epoch_log
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold

Mode = Literal["any", "members", "stored"]


@dataclass(frozen=True, eq=False)
class Opened:
    """One run. Nothing in it changes after it was opened, so all requests may share it."""

    key: str
    """What the page calls it; unlike its path, it comes back from the browser."""
    path: Path
    spec: Spec
    front: Front
    """As stored: scores on the whole test split."""
    notes: list[dict[str, Any]]
    described: dict[str, Any]
    """What ``run.json`` holds."""
    model: Manifold | None
    splits: Splits | None
    still: str
    """Why nothing can be evaluated live; empty where it can."""

    @property
    def mode(self) -> Mode:
        """Which preferences can be chosen: any, the members' own, or those of the stored front."""
        if self.model is None or self.splits is None:
            return "stored"
        return "members" if is_finite(self.model) else "any"

    @property
    def parameters(self) -> int:
        return parameters_learned(self.described, self.notes)

    @property
    def title(self) -> str:
        return f"{self.spec.method.name}, seed {self.spec.seed}"


def open_runs(paths: Sequence[Path], root: Path | None) -> list[Opened]:
    """Open runs of the same tasks; data that several of them use is loaded once.

    Without ``root``, no data is loaded and nothing can be evaluated.
    """
    specs = [read_spec(path) for path in paths]
    fronts = [_front(path) for path in paths]
    for path, front in zip(paths, fronts, strict=True):
        if not front.has_tasks_of(fronts[0]):
            raise UsageError(
                f"runs on one page must have the same tasks: {paths[0]} has "
                f"{_listed(fronts[0].tasks)}, {path} has {_listed(front.tasks)}"
            )
    data: dict[str, Splits | UsageError] = {}
    keys = _keys(paths)
    return [
        _open(key, path, spec, front, root, data)
        for key, path, spec, front in zip(keys, paths, specs, fronts, strict=True)
    ]


def _open(
    key: str,
    path: Path,
    spec: Spec,
    front: Front,
    root: Path | None,
    data: dict[str, Splits | UsageError],
) -> Opened:
    model, splits, still = None, None, ""
    try:
        if not (path / "checkpoint.safetensors").is_file():
            raise UsageError("its weights are not here (no checkpoint.safetensors)")
        model = open_run(path)[1]
        found = None if root is None else _load(spec, root, data)
        if isinstance(found, UsageError):
            raise UsageError(f"its data is not here ({found})")
        splits = found
    except UsageError as error:
        still = str(error)
    described = read_json(path / "run.json", "run")
    return Opened(key, path, spec, front, _notes(path), described, model, splits, still)


def _load(spec: Spec, root: Path, data: dict[str, Splits | UsageError]) -> Splits | UsageError:
    """The splits of a problem, or why they cannot be had; the same question is asked once."""
    question = json.dumps([spec.problem.name, spec.data.model_dump(mode="json")])
    if question not in data:
        try:
            data[question] = spec.load(root)
        except UsageError as error:
            data[question] = error
    return data[question]


def _front(path: Path) -> Front:
    if not (path / "front.json").is_file():
        raise UsageError(
            f"{path} has no front yet; end its training with --resume, or run: "
            f"lorpman evaluate {path}"
        )
    return Front.load(path / "front.json")


def _notes(path: Path) -> list[dict[str, Any]]:
    """What was noted after every epoch; a page is worth having without it."""
    try:
        return [note for note in read_epoch_log(path) if isinstance(note, dict)]
    except UsageError:
        return []


def _keys(paths: Sequence[Path]) -> list[str]:
    """A name for every path, and never the same for two.

    >>> _keys([Path("a/run"), Path("b/run"), Path("c")])
    ['run', 'run-2', 'c']
    """
    keys: list[str] = []
    for path in paths:
        name = path.resolve().name or "run"
        same = sum(key == name or key.startswith(f"{name}-") for key in keys)
        keys.append(name if not same else f"{name}-{same + 1}")
        while keys.count(keys[-1]) > 1:
            keys[-1] += "-again"
    return keys


def _listed(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:4]) + (" ..." if len(tasks) > 4 else "")
