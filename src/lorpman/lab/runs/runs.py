"""Runs: a problem, a method and a seed, trained into a directory that can be read again."""

import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch

from lorpman._files import locked_folder, read_json, write_json
from lorpman.errors import UsageError, unknown
from lorpman.front.evaluate import evaluate
from lorpman.front.front import Front
from lorpman.front.plot_ranks import plot_ranks
from lorpman.lab.datasets.splits import Splits, batches
from lorpman.lab.methods.method import Method
from lorpman.lab.methods.registry import get_method
from lorpman.lab.problems.problem import Problem, SettingsLayer
from lorpman.lab.problems.registry import get_problem
from lorpman.lab.recipes.recipe import get_recipe
from lorpman.lab.runs.epoch_log import Notes, make_loggers
from lorpman.lab.runs.fit_spec import EVALUATION_BATCH, fit_spec
from lorpman.lab.settings import DEFAULT_SAMPLING, SettingsGroup, TrainingSettings, distribute
from lorpman.manifold.base import Manifold
from lorpman.manifold.low_rank import LowRank
from lorpman.preference import Sampler
from lorpman.task import Task
from lorpman.training import checkpoint as checkpoints
from lorpman.training.devices import Engine, is_first_process, leave, together
from lorpman.training.state import load_weights

_FORMAT = 1
SPLITS = ("train", "validation", "test")
Scale = Literal["paper", "laptop"]


@dataclass(frozen=True)
class Spec:
    """Everything that decides a run's numbers, before anything is loaded."""

    problem: Problem
    method: Method
    seed: int
    training: TrainingSettings
    own: SettingsGroup
    """The method's settings."""
    data: SettingsGroup
    """The problem's settings."""
    scale: Scale = "paper"
    """laptop where the preset was reduced; told, but no part of the identity."""
    recipe: str | None = None
    """The recipe that the settings started from; likewise."""

    @classmethod
    def make(
        cls,
        problem: str,
        method: str,
        seed: int,
        overrides: Mapping[str, Any],
        scale: Scale = "paper",
        recipe: str | None = None,
    ) -> "Spec":
        """The preset at the given scale, then the recipe, then ``overrides``."""
        row, rival = get_problem(problem), get_method(method)
        preset = row.preset()
        reduced = preset.laptop if scale == "laptop" else None
        layers: list[SettingsLayer] = [preset, reduced] if reduced else [preset]
        values = dict(rival.defaults)
        for layer in layers:
            values = layer.laid_over(values, method, rival.defaults)
        if recipe is not None:
            values = get_recipe(recipe).laid_over(values, method, rival.defaults, overrides)
        values |= overrides
        groups: dict[str, type[SettingsGroup]] = {
            "training": TrainingSettings,
            "own": rival.settings,
            "data": row.settings,
        }
        parts = distribute(values, groups)
        training = parts["training"]
        assert isinstance(training, TrainingSettings)
        if training.sampling != DEFAULT_SAMPLING and not rival.takes_sampling:
            raise UsageError(f"{method} draws no preferences by sampling; leave it out")
        taken: Scale = scale if reduced else "paper"
        return cls(row, rival, seed, training, parts["own"], parts["data"], taken, recipe)

    def settings(self) -> dict[str, Any]:
        """All settings as one flat, JSON-ready mapping."""
        groups = (self.training, self.own, self.data)
        return {k: v for group in groups for k, v in group.model_dump(mode="json").items()}

    def identity(self) -> dict[str, Any]:
        """What two runs must share to be the same run."""
        settings = {k: v for k, v in self.settings().items() if k not in TrainingSettings.WATCHING}
        return {**self.described(), "settings": settings}

    def described(self) -> dict[str, Any]:
        """What makes this again: :meth:`make` and the scale take it."""
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

    def sampler(self) -> Sampler | None:
        """How preferences are drawn, where the method does not leave that to its manifold."""
        if self.method.sampler is not None:
            return self.method.sampler(self.own)
        return self.training.make_sampler() if self.method.takes_sampling else None

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
    first = is_first_process()
    if first:
        _check_free(out, spec, engine, resume)
    splits = spec.load(root)
    model = spec.build()
    check_freezing(spec, model)
    with ExitStack() as alone:
        if first:
            _make(out)
            fix = "wait for its end, or choose another --out"
            in_use = f"{out} is in use by another training; {fix}"
            alone.enter_context(locked_folder(out, in_use))
            # Another training may have come and gone while the data was loaded.
            _check_free(out, spec, engine, resume)
            _claim(out, spec, model, engine)
        fabric = engine.start(watchers)
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
                compiled=engine.compiled,
                progress=progress,
                checkpoint=out / "checkpoint.safetensors",
                checkpoint_every=checkpoint_every,
                resume=resume,
                on_epoch=None if notes is None else notes.add,
            )
            leave(fabric)
        assert notes is not None
        front = evaluate(
            model, spec.tasks(), batches(splits.test, EVALUATION_BATCH), label=spec.method.name
        )
        front.save(out / "front.json")
        front.plot(out / "front.png")
        if spec.problem.figure is not None:
            spec.problem.figure(notes.read(), front, out / f"{spec.problem.name}.png")
        if isinstance(model, LowRank) and model.budget is not None:
            plot_ranks(model, out / "ranks.png")
        network = model.solution(model.preferences()[0])
        count = sum(p.numel() for p in network.parameters())
        return Result(model, front, count, notes.seconds(), splits.note)


def evaluate_run(run: Path, split: str, root: Path) -> Front:
    """The front of a finished run on one of its splits; :func:`save_front` writes it."""
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    spec, model = open_run(run)
    data = getattr(spec.load(root), split)
    loader = batches(data, EVALUATION_BATCH)
    return evaluate(model, spec.tasks(), loader, label=spec.method.name)


def save_front(front: Front, run: Path, split: str) -> None:
    """Write a run's front, and its picture, beside the run's own."""
    name = "front" if split == "test" else f"front-{split}"
    front.save(run / f"{name}.json")
    front.plot(run / f"{name}.png")


def epochs_done(run: Path) -> int:
    """How many epochs of a run are saved."""
    return checkpoints.epochs_done(run / "checkpoint.safetensors")


def open_run(run: Path) -> tuple[Spec, Manifold]:
    """The settings of a run directory, and its manifold with the trained weights."""
    spec = read_spec(run)
    model = spec.build()
    path = run / "checkpoint.safetensors"
    load_weights(model, checkpoints.load(path)["model"], path)
    return spec, model.eval()


def read_spec(run: Path) -> Spec:
    """The settings of a run directory."""
    if not os.path.isdir(run):  # noqa: PTH112 (Path.is_dir raises for long names)
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
        scale: Scale = "laptop" if described.get("scale") == "laptop" else "paper"
    except (KeyError, TypeError) as error:
        raise UsageError(f"run {run / 'run.json'} is not a run description: {error}") from None
    kinds = {"problem": str, "method": str, "seed": int, "settings": dict}
    for key, kind in kinds.items():
        if type(described[key]) is not kind:
            found = f"{key} must be {kind.__name__}, found {described[key]!r}"
            raise UsageError(f"run {run / 'run.json'} is not a run description: {found}")
    return Spec.make(problem, method, seed, settings, scale)


def check_freezing(spec: Spec, model: Manifold) -> None:
    """Refuse to freeze what cannot be, before a directory is made and epochs are spent."""
    core = getattr(model, "inner", model)
    if spec.training.freeze_epoch is not None and type(core).freeze is Manifold.freeze:
        core.freeze()


def _check_free(out: Path, spec: Spec, engine: Engine, resume: bool) -> None:
    """Refuse a directory that holds something else than this run, without touching it."""
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
    elif read_spec(out).identity() != spec.identity():
        raise UsageError(
            f"{out} holds a run with other settings; resume it with the settings in {existing}"
        )
    elif (before := _engine_of(existing, engine)) != engine.described():
        raise UsageError(f"{out} was trained with other devices or precision: {before}")


def _engine_of(run_file: Path, engine: Engine) -> dict[str, Any]:
    """What a run was trained on; runs from before there was a setting have its default."""
    before = read_json(run_file, "run").get("engine", engine.described())
    return {**Engine().described(), **before}


def _make(out: Path) -> None:
    """The directory of a run; not before its data is there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None


def _claim(out: Path, spec: Spec, model: Manifold, engine: Engine) -> None:
    """Make ``out``, which is held, this run's directory."""
    # safetensors writes to names of its own first, and a kill leaves them behind.
    for leftover in out.glob(".tmp??????"):
        leftover.unlink(missing_ok=True)
    if not (out / "run.json").exists():
        facts = {
            "format": _FORMAT,
            **spec.described(),
            "scale": spec.scale,
            "recipe": spec.recipe,
            **_provenance(model, engine),
        }
        write_json(out / "run.json", facts)


def _provenance(model: Manifold, engine: Engine) -> dict[str, Any]:
    packages = ("lorpman", "torch", "lightning-fabric", "moocore", "numpy")
    return {
        "parameters": model.num_parameters(),
        "versions": {"python": platform.python_version(), **{p: version(p) for p in packages}},
        "engine": engine.described(),
        "threads": torch.get_num_threads(),
    }
