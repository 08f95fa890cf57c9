"""A run as the page sees it: its stored front and, where weights and data are there, its model."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lorpman._files import read_json
from lorpman.errors import NotFinite, UsageError
from lorpman.front.front import Front
from lorpman.front.select import is_finite
from lorpman.lab.datasets.splits import Splits
from lorpman.lab.runs.directory import open_run, read_spec
from lorpman.lab.runs.epoch_log import parameters_learned, read_epoch_log
from lorpman.lab.runs.spec import Spec
from lorpman.manifold.base import Manifold

Mode = Literal["any", "members", "stored"]


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """One run. Nothing in it changes after it was opened, so all requests may share it."""

    key: str
    """What the page calls it. A browser sends this back, and never learns a path to send."""
    path: Path
    spec: Spec
    front: Front
    """As stored: scores on the whole test split."""
    epochs: list[dict[str, Any]]
    """What was noted after every epoch, a line of ``metrics.jsonl`` each."""
    description: dict[str, Any]
    """What ``run.json`` holds."""
    model: Manifold | None
    splits: Splits | None
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
    def title(self) -> str:
        """What people call it: its method and its seed."""
        return f"{self.spec.method.name}, seed {self.spec.seed}"


def open_runs(paths: Sequence[Path], root: Path | None) -> list[OpenedRun]:
    """Open runs of the same tasks; data that several of them use is loaded once.

    Args:
        paths: The directories of the runs.
        root: Where datasets are. Without it no data is loaded, and nothing can be evaluated.

    Raises:
        UsageError: If a directory holds no run or no front, or if the tasks of two runs differ.
            Missing weights or data are no error: such a run shows its stored front.
        NotFinite: If a run's weights hold NaN or infinity; it is a UsageError.
    """
    specs = [read_spec(path) for path in paths]
    fronts = [_load_front(path) for path in paths]
    for path, front in zip(paths, fronts, strict=True):
        if not front.has_tasks_of(fronts[0]):
            raise UsageError(
                f"runs on one page must have the same tasks: {paths[0]} has "
                f"{_listed(fronts[0].tasks)}, {path} has {_listed(front.tasks)}"
            )
    loaded: dict[str, Splits | UsageError] = {}
    keys = _name_runs(paths)
    return [
        _open(key, path, spec, front, root, loaded)
        for key, path, spec, front in zip(keys, paths, specs, fronts, strict=True)
    ]


def _open(
    key: str,
    path: Path,
    spec: Spec,
    front: Front,
    root: Path | None,
    loaded: dict[str, Splits | UsageError],
) -> OpenedRun:
    """Open one run; ``loaded`` holds the data of those opened before, and grows."""
    model, splits, why_not_live = None, None, ""
    try:
        if not (path / "checkpoint.safetensors").is_file():
            raise UsageError("its weights are not here (no checkpoint.safetensors)")
        model = open_run(path)[1]
        data = None if root is None else _load_data(spec, root, loaded)
        if isinstance(data, UsageError):
            raise UsageError(f"its data is not here ({data})")
        splits = data
    except NotFinite:
        raise
    except UsageError as error:
        why_not_live = str(error)
    description = read_json(path / "run.json", "run")
    epochs = _read_epochs(path)
    return OpenedRun(key, path, spec, front, epochs, description, model, splits, why_not_live)


def _load_data(
    spec: Spec, root: Path, loaded: dict[str, Splits | UsageError]
) -> Splits | UsageError:
    """The splits of a problem, or why they cannot be had; the same question is asked once."""
    question = json.dumps([spec.problem.name, spec.data.model_dump(mode="json")])
    if question not in loaded:
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
