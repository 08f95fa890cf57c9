"""Searching a problem's settings: validation hypervolume over the preset's ranges, with Optuna."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lorpman.data.base import batches
from lorpman.engine import Engine
from lorpman.errors import TrainingDiverged, UsageError
from lorpman.evaluate import evaluate
from lorpman.extras import need
from lorpman.fit import Epoch
from lorpman.recipe import EVALUATION_BATCH, fit_spec
from lorpman.runs import Scale, Spec

Ranges = Mapping[str, Sequence[Any]]
Say = Callable[[str], None]


@dataclass(frozen=True)
class Sweep:
    """What is searched: one problem and method, and values to try for some settings."""

    problem: str
    method: str
    seed: int
    overrides: Mapping[str, Any]
    ranges: Ranges
    scale: Scale = "paper"

    @classmethod
    def make(
        cls,
        problem: str,
        method: str,
        seed: int,
        overrides: Mapping[str, Any],
        ranges: Ranges,
        scale: Scale = "paper",
    ) -> "Sweep":
        """Ranges given take the place of the preset's; settings given are not searched."""
        spec = Spec.make(problem, method, seed, overrides, scale)
        known = spec.settings()
        preset = {k: v for k, v in spec.problem.preset().search.items() if k in known}
        chosen = {k: list(v) for k, v in {**preset, **ranges}.items() if k not in overrides}
        if not chosen:
            raise UsageError(
                f"the preset of {problem} has no ranges for {method}; give some with "
                "--search key=value,value"
            )
        sweep = cls(problem, method, seed, overrides, chosen, scale)
        for key, values in chosen.items():
            for value in values:
                sweep.spec({key: value})  # a value that no run can have fails now, not at night
        return sweep

    def spec(self, chosen: Mapping[str, Any]) -> Spec:
        whole = {k: int(v) if v == int(v) else v for k, v in chosen.items() if _is_number(v)}
        values = {**self.overrides, **chosen, **whole}
        return Spec.make(self.problem, self.method, self.seed, values, self.scale)

    def combinations(self) -> int:
        return math.prod(len(values) for values in self.ranges.values())

    def name(self) -> str:
        """Of the study: the same words for the same search, so that workers meet in one."""
        fixed = ",".join(f"{k}={v}" for k, v in sorted(self.overrides.items()))
        parts = (self.problem, self.method, str(self.seed), self.scale, fixed)
        return "/".join(part for part in parts if part)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def tune(sweep: Sweep, trials: int, study_file: Path, root: Path, say: Say) -> Any:
    """Add trials to the study until it has ``trials`` finished ones; the study.

    Several processes may do so at once with one file, and any of them may be stopped and
    started again. Where the ranges allow no more combinations than trials, each is tried once;
    otherwise Optuna's TPE chooses. A trial below the median of the others is ended early.
    """
    if trials < 1:
        raise UsageError(f"trials must be at least 1, got {trials}")
    optuna = need("optuna", extra="tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = _open(optuna, sweep, trials, study_file)
    ended = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    splits = sweep.spec({}).load(root)

    def objective(trial: Any) -> float:
        chosen = {k: trial.suggest_categorical(k, v) for k, v in sweep.ranges.items()}
        spec = sweep.spec(chosen)
        model = spec.build()

        def watch(epoch: Epoch) -> None:
            if epoch.hypervolume is not None:
                trial.report(epoch.hypervolume, epoch.number)
                if epoch.number < spec.training.epochs and trial.should_prune():
                    raise optuna.TrialPruned

        fabric = Engine().start([])
        fit_spec(spec, model, splits, fabric=fabric, progress=False, on_epoch=watch)
        validation = batches(splits.validation, EVALUATION_BATCH)
        return float(evaluate(model, spec.tasks(), validation).hypervolume())

    def tell(study: Any, trial: Any) -> None:
        settings = " ".join(f"{k}={v}" for k, v in trial.params.items())
        value = "-" if trial.value is None else f"{trial.value:.4g}"
        say(f"{trial.number:>4}  {value:>8}  {trial.state.name.lower():<9} {settings}")
        if len(study.get_trials(deepcopy=False, states=ended)) >= trials:
            study.stop()

    if len(study.get_trials(deepcopy=False, states=ended)) < trials:
        study.optimize(objective, callbacks=[tell], catch=(TrainingDiverged,))
    return study


def _open(optuna: Any, sweep: Sweep, trials: int, study_file: Path) -> Any:
    """The study in the file, made there if it is new; the file is only ever appended to."""
    from optuna.storages.journal import JournalFileBackend

    epochs = sweep.spec({}).training.epochs
    ranges = {key: list(values) for key, values in sweep.ranges.items()}
    if sweep.combinations() <= trials:
        sampler = optuna.samplers.GridSampler(ranges)
    else:
        sampler = optuna.samplers.TPESampler(constant_liar=True)
    try:
        _check_journal(study_file)
        study_file.parent.mkdir(parents=True, exist_ok=True)
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(study_file)))
        return optuna.create_study(
            storage=storage,
            study_name=sweep.name(),
            direction="maximize",
            load_if_exists=True,
            sampler=sampler,
            # Early epochs say little about a run that freezes late.
            pruner=optuna.pruners.MedianPruner(3, n_warmup_steps=max(1, epochs // 3)),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cannot use {study_file} as a study file: {error}") from None


def _check_journal(path: Path) -> None:
    """Optuna appends to whatever file it is given: look before it does."""
    if path.exists():
        with path.open("rb") as file:
            first = file.readline()
        if first and "op_code" not in json.loads(first):
            raise ValueError("it holds something else")
