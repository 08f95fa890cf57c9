"""Runs: a problem, a method and a seed, trained into a directory that can be read again."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from lorpman import checkpoint as checkpoints
from lorpman.data.base import Batch, Splits, batches
from lorpman.errors import UsageError, unknown
from lorpman.evaluate import evaluate
from lorpman.files import read_json, write_bytes, write_json
from lorpman.fit import Epoch, fit, load_weights
from lorpman.front import Front
from lorpman.manifold.base import Manifold
from lorpman.method import Method
from lorpman.methods import get_method
from lorpman.preference import grid
from lorpman.problems import get_problem
from lorpman.problems.base import Problem
from lorpman.settings import Group, Training, distribute
from lorpman.task import Task

_FORMAT = 1
_EVALUATION_BATCH = 1000
SPLITS = ("train", "validation", "test")
Scale = Literal["paper", "laptop"]


@dataclass(frozen=True)
class Spec:
    """Everything that decides a run's numbers, before anything is loaded."""

    problem: Problem
    method: Method
    seed: int
    training: Training
    own: Group
    """The method's settings."""
    data: Group
    """The problem's settings."""

    @classmethod
    def make(
        cls,
        problem: str,
        method: str,
        seed: int,
        overrides: Mapping[str, Any],
        scale: Scale = "paper",
    ) -> "Spec":
        """The preset at the given scale, then ``overrides``."""
        row, rival = get_problem(problem), get_method(method)
        preset = row.preset()
        layers = [preset, preset.laptop] if scale == "laptop" and preset.laptop else [preset]
        values = {k: v for layer in layers for k, v in layer.of(method).items()} | {**overrides}
        groups: dict[str, type[Group]] = {
            "training": Training,
            "own": rival.settings,
            "data": row.settings,
        }
        parts = distribute(values, groups)
        training = parts["training"]
        assert isinstance(training, Training)
        return cls(row, rival, seed, training, parts["own"], parts["data"])

    def settings(self) -> dict[str, Any]:
        """All settings as one flat, JSON-ready mapping."""
        groups = (self.training, self.own, self.data)
        return {k: v for group in groups for k, v in group.model_dump(mode="json").items()}

    def identity(self) -> dict[str, Any]:
        """What two runs must share to be the same run."""
        return {
            "problem": self.problem.name,
            "method": self.method.name,
            "seed": self.seed,
            "settings": self.settings(),
        }

    def tasks(self) -> list[Task]:
        return self.problem.tasks(self.data)

    def load(self, root: Path) -> Splits:
        return self.problem.load(root, self.data)

    def build(self) -> Manifold:
        """The untrained manifold; the seed decides its start."""
        torch.manual_seed(self.seed)
        network = self.problem.network(self.data)
        model = self.method.manifold(network, len(self.tasks()), self.problem.shared, self.own)
        if self.problem.start is not None:
            self.problem.start(model)
        return model


@dataclass(frozen=True)
class Result:
    """What training left behind."""

    model: Manifold
    front: Front
    network_parameters: int
    seconds: float
    note: str
    """How the data differs from the official splits, if it does."""


def data_root(data: Path | None) -> Path:
    """Where the data is: the option, else LORPMAN_DATA, else a cache directory."""
    if data is not None:
        return data
    if "LORPMAN_DATA" in os.environ:
        return Path(os.environ["LORPMAN_DATA"])
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(cache).expanduser() / "lorpman" / "data"


def train(
    spec: Spec, out: Path, root: Path, *, resume: bool = False, progress: bool = True
) -> Result:
    """Train ``spec`` into the directory ``out``, evaluate it on the test split, draw it."""
    model = spec.build()
    _claim(out, spec, model, resume)
    splits, tasks = spec.load(root), spec.tasks()
    order = torch.Generator().manual_seed(spec.seed)
    saved = out / "checkpoint.safetensors"
    done = checkpoints.load(saved)["epochs_done"] if resume and saved.exists() else 0
    notes = _Notes(out / "metrics.jsonl", spec.problem, model, done)
    training = spec.training
    fit(
        model,
        tasks,
        batches(splits.train, training.batch_size, shuffle=True, generator=order),
        epochs=training.epochs,
        objective=spec.method.rule(spec.own),
        window=training.window,
        concentration=training.concentration,
        freeze_epoch=training.freeze_epoch,
        freeze_heads=training.freeze_heads,
        optimizer=training.make_optimizer(),
        scheduler=training.make_scheduler(),
        validation=_watched(splits, training.watch_samples),
        validation_alphas=_watched_preferences(model, training.watch_preferences),
        seed=spec.seed,
        progress=progress,
        checkpoint=saved,
        resume=resume,
        on_epoch=notes.add,
    )
    front = evaluate(model, tasks, batches(splits.test, _EVALUATION_BATCH), label=spec.method.name)
    front.save(out / "front.json")
    front.plot(out / "front.png")
    if spec.problem.figure is not None:
        spec.problem.figure(notes.read(), front, out / f"{spec.problem.name}.png")
    network = model.solution(model.preferences()[0])
    count = sum(p.numel() for p in network.parameters())
    return Result(model, front, count, notes.seconds(), splits.note)


def evaluate_run(run: Path, split: str, root: Path) -> Front:
    """The front of a finished run on one of its splits; written beside the run's own."""
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    spec, model = open_run(run)
    data = getattr(spec.load(root), split)
    loader = batches(data, _EVALUATION_BATCH)
    front = evaluate(model, spec.tasks(), loader, label=spec.method.name)
    name = "front" if split == "test" else f"front-{split}"
    front.save(run / f"{name}.json")
    front.plot(run / f"{name}.png")
    return front


def open_run(run: Path) -> tuple[Spec, Manifold]:
    """The settings of a run directory, and its manifold with the trained weights."""
    spec = read_spec(run)
    model = spec.build()
    path = run / "checkpoint.safetensors"
    load_weights(model, checkpoints.load(path)["model"], path)
    return spec, model.eval()


def read_spec(run: Path) -> Spec:
    """The settings of a run directory."""
    if not run.is_dir():
        raise UsageError(f"no run directory at {run}; train one with: lorpman train PROBLEM")
    described = read_json(run / "run.json", "run")
    try:
        if described["format"] != _FORMAT:
            raise UsageError(
                f"{run} was written by another version: expected format {_FORMAT}, "
                f"found {described['format']}"
            )
        keys = ("problem", "method", "seed", "settings")
        problem, method, seed, settings = (described[key] for key in keys)
    except (KeyError, TypeError) as error:
        raise UsageError(f"run {run / 'run.json'} is not a run description: {error}") from None
    return Spec.make(problem, method, seed, settings)


def _claim(out: Path, spec: Spec, model: Manifold, resume: bool) -> None:
    """Make ``out`` this run's directory, or refuse without touching what is there."""
    existing = out / "run.json"
    if existing.exists():
        if not resume:
            raise UsageError(
                f"{out} already holds a run; pass --resume to continue it, or another --out"
            )
        if read_spec(out).identity() != spec.identity():
            raise UsageError(
                f"{out} holds a run with other settings; resume it with the settings in {existing}"
            )
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"{out} is not empty and holds no run; choose another --out")
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None
    write_json(existing, {"format": _FORMAT, **spec.identity(), **_provenance(model)})


def _provenance(model: Manifold) -> dict[str, Any]:
    packages = ("lorpman", "torch", "lightning-fabric", "moocore", "numpy")
    return {
        "parameters": model.num_parameters(),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "threads": torch.get_num_threads(),
    }


def _watched(splits: Splits, samples: int) -> list[Batch] | None:
    """The first validation samples as ready batches, for a quick look after every epoch."""
    if samples == 0:
        return None
    held = []
    for batch in batches(splits.validation, min(samples, _EVALUATION_BATCH)):
        held.append(batch)
        samples -= len(batch[1][0])
        if samples <= 0:
            break
    return held


def _watched_preferences(model: Manifold, count: int | None) -> Tensor | None:
    """Fewer preferences for that quick look, where the manifold has more."""
    if count is None or len(model.preferences()) <= count:
        return None
    return grid(model.num_tasks, count)


class _Notes:
    """The run's ``metrics.jsonl``: one line per epoch."""

    def __init__(self, path: Path, problem: Problem, model: Manifold, epochs_done: int) -> None:
        self._path, self._problem, self._model = path, problem, model
        if epochs_done:
            # An epoch noted but not saved before an interruption is done, and noted, again.
            kept = [note for note in self.read() if note["number"] <= epochs_done]
            write_bytes(path, "".join(json.dumps(note) + "\n" for note in kept).encode())
        else:
            write_bytes(path, b"")
            if problem.trace is not None:
                self._write({"number": 0, **problem.trace(model)})

    def add(self, epoch: Epoch) -> None:
        trace = {} if self._problem.trace is None else self._problem.trace(self._model)
        self._write({**asdict(epoch), **trace})

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def seconds(self) -> float:
        return float(sum(note.get("seconds", 0.0) for note in self.read()))

    def _write(self, note: Mapping[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(note) + "\n")
