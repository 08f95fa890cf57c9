"""Runs: a problem, a method and a seed, trained into a directory that can be read again."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch

from lorpman import checkpoint as checkpoints
from lorpman.data.base import Splits, batches
from lorpman.engine import Engine, is_first_process, leave, together
from lorpman.errors import UsageError, unknown
from lorpman.evaluate import evaluate
from lorpman.files import read_json, write_json
from lorpman.front import Front
from lorpman.manifold.base import Manifold
from lorpman.methods import Method, get_method
from lorpman.notes import Notes, make_loggers
from lorpman.problems import get_problem
from lorpman.problems.base import Problem
from lorpman.recipe import EVALUATION_BATCH, fit_spec
from lorpman.settings import Group, Training, distribute
from lorpman.task import Task
from lorpman.training import load_weights

_FORMAT = 1
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
    spec: Spec,
    out: Path,
    root: Path,
    *,
    resume: bool = False,
    progress: bool = True,
    checkpoint_every: int | None = None,
    engine: Engine | None = None,
    loggers: Sequence[str] = (),
) -> Result:
    """Train ``spec`` into the directory ``out``, evaluate it on the test split, draw it."""
    engine = engine or Engine()
    engine.check_batch(spec.training.batch_size)
    watchers = make_loggers(loggers, out)
    model = spec.build()
    if is_first_process():
        _claim(out, spec, model, engine, resume)
    fabric = engine.start(watchers)
    splits, tasks = spec.load(root), spec.tasks()
    with together(fabric):
        notes = None
        if fabric.is_global_zero:
            notes = Notes(out / "metrics.jsonl", spec.problem, model, fabric)
        fit_spec(
            spec,
            model,
            splits,
            fabric=fabric,
            own_preferences=engine.own_preferences,
            progress=progress,
            checkpoint=out / "checkpoint.safetensors",
            checkpoint_every=checkpoint_every,
            resume=resume,
            on_epoch=None if notes is None else notes.add,
        )
        leave(fabric)
    assert notes is not None
    front = evaluate(model, tasks, batches(splits.test, EVALUATION_BATCH), label=spec.method.name)
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
    loader = batches(data, EVALUATION_BATCH)
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


def _claim(out: Path, spec: Spec, model: Manifold, engine: Engine, resume: bool) -> None:
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
        before = read_json(existing, "run").get("engine", engine.described())
        if before != engine.described():
            raise UsageError(f"{out} was trained with other devices or precision: {before}")
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"{out} is not empty and holds no run; choose another --out")
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None
    write_json(existing, {"format": _FORMAT, **spec.identity(), **_provenance(model, engine)})


def _provenance(model: Manifold, engine: Engine) -> dict[str, Any]:
    packages = ("lorpman", "torch", "lightning-fabric", "moocore", "numpy")
    return {
        "parameters": model.num_parameters(),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "engine": engine.described(),
        "threads": torch.get_num_threads(),
    }
