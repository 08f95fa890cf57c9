"""Searching a problem's settings: validation hypervolume over the preset's ranges, with Optuna."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import torch

from lorpman._files import Kind, check_target, parse_json
from lorpman.errors import (
    NotFinite,
    ProcessLost,
    TrainingDiverged,
    UsageError,
    need,
    whole_number,
)
from lorpman.front.evaluate import evaluate
from lorpman.lab.datasets.splits import Splits, batches
from lorpman.lab.own_process import call_in_own_process
from lorpman.lab.runs.evaluation import EVALUATION_BATCH
from lorpman.lab.runs.train import check_freezing, fit_spec
from lorpman.lab.runs.trial import try_out
from lorpman.lab.settings import SettingsGroup, format_assignments
from lorpman.lab.sweep import Sweep
from lorpman.lab.trial_board import watching_trials
from lorpman.lab.workers import Workers
from lorpman.training.devices import Engine
from lorpman.training.fit import Epoch
from lorpman.training.options import Placement

# States of trials that need not be tried again; a failed one was lost with its worker.
_ENDED = ("COMPLETE", "PRUNED")


def tune(
    sweep: Sweep,
    trials: int,
    study_file: Path,
    root: Path,
    say: Callable[[str], None],
    workers: Workers | None = None,
    *,
    tell: Callable[[str], None] | None = None,
    live: bool = False,
) -> Any:
    """Add trials to a study until it has enough finished ones.

    Several processes may do so at once with one file, and any of them may be stopped and
    started again. Where the ranges allow no more combinations than trials, each is tried once;
    otherwise Optuna's TPE chooses. A trial below the median of the others is ended early.

    Args:
        sweep: What is searched.
        trials: How many finished ones the study shall have.
        study_file: Optuna's journal; made if it is not there, continued if it is.
        root: The data directory.
        say: Told one line about every trial that ends.
        workers: How many trials at once, and where; None for one after the other, here.
        tell: Told which trial begins, and the time left; None for nobody.
        live: On a terminal, show a table that follows the trials instead.

    Returns:
        The Optuna study.

    Raises:
        UsageError: If ``trials`` is below 1, the file is something else, no trial came to its end,
            or workers are asked for that are not there.
    """
    whole_number("trials", trials)
    optuna = need("optuna", extra="tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    first = sweep.spec({key: values[0] for key, values in sweep.ranges.items()})
    check_freezing(first, first.build())
    workers = workers or Workers()
    # Kept from trial to trial, unless what is searched decides the data.
    load = lru_cache(maxsize=1)(lambda data: replace(first, data=data).load(root))
    # Before the study is made: missing data or workers should not leave an empty study behind.
    try_out(first, load(first.data), root)
    workers.check()
    study = _open_study(optuna, sweep, study_file)
    while not _is_done(study, sweep, trials):
        with watching_trials(study, sweep, trials, workers.at_once, tell, live):
            if workers.several:
                _try_several(study, sweep, trials, study_file, root, say, workers)
            else:
                _try_in_turn(study, sweep, trials, say, load)
    if not any(trial.state.name == "COMPLETE" for trial in study.get_trials(deepcopy=False)):
        raise UsageError(
            f"no trial of the study in {study_file} came to its end; search other values"
        )
    return study


def _try_in_turn(
    study: Any,
    sweep: Sweep,
    trials: int,
    say: Callable[[str], None],
    load: Callable[[SettingsGroup], Splits],
) -> None:
    """Do trials here until the study has enough; others may work on it at the same time."""
    while not _is_done(study, sweep, trials):
        if sweep.combinations() <= trials:
            study.enqueue_trial(_untried(study, sweep))
        say(_trial_line(_try_one(study, sweep, load)))


def _try_one(study: Any, sweep: Sweep, load: Callable[[SettingsGroup], Splits]) -> Any:
    """Do the next trial of a study; what became of it."""
    ended: list[Any] = []
    study.optimize(
        lambda trial: _validation_hypervolume(trial, sweep, load),
        n_trials=1,
        # optimize returns nothing, and the newest trial of the study may be another worker's.
        callbacks=[lambda _, trial: ended.append(trial)],
    )
    return ended[0]


def _try_several(
    study: Any,
    sweep: Sweep,
    trials: int,
    study_file: Path,
    root: Path,
    say: Callable[[str], None],
    workers: Workers,
) -> None:
    """Do as many trials as the study lacks, each in a process of its own.

    One whose process dies is lost, and done again in the next round.
    """
    if sweep.combinations() <= trials:
        waiting = _tried(study, ("WAITING",))
        left = _left(study, sweep)
        for values in left:
            if values not in waiting:
                study.enqueue_trial(values)
        count = len(left)
    else:
        count = trials - len(_tried(study, _ENDED))
    call = (sweep, study_file.absolute(), root.absolute(), workers.threads)
    numbers = []
    for number in workers.each(_try_apart, [call] * count):
        if number is not None:
            numbers.append(number)
            say(_trial_line(study.get_trials(deepcopy=False)[number]))
    if not numbers:
        raise UsageError("the processes of all trials died, perhaps for lack of memory")


def _try_apart(sweep: Sweep, study_file: Path, root: Path, threads: int | None) -> int | None:
    """Do one trial in a process of its own; its number, or None if the process died."""
    try:
        return call_in_own_process(_try_there, sweep, study_file, root, threads)
    except ProcessLost:
        return None


def _try_there(sweep: Sweep, study_file: Path, root: Path, threads: int | None) -> int:
    """The other end of the call: one trial of the study in the file."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if threads is not None:
        torch.set_num_threads(threads)
    first = sweep.spec({})
    study = _open_study(optuna, sweep, study_file)
    return _try_one(study, sweep, lambda data: replace(first, data=data).load(root)).number


def _trial_line(trial: Any) -> str:
    settings = " ".join(format_assignments(trial.params))
    value = "-" if trial.value is None else f"{trial.value:.4g}"
    end = "diverged" if "diverged" in trial.user_attrs else trial.state.name.lower()
    return f"{trial.number:>4}  {value:>8}  {end:<9} {settings}"


def _validation_hypervolume(
    trial: Any, sweep: Sweep, load: Callable[[SettingsGroup], Splits]
) -> float:
    """Train as Optuna proposes; the score of the trial."""
    from optuna import TrialPruned

    spec = sweep.spec({k: trial.suggest_categorical(k, v) for k, v in sweep.ranges.items()})
    model, splits = spec.build(), load(spec.data)

    def prune_if_hopeless(epoch: Epoch) -> None:
        if epoch.hypervolume is not None:
            trial.report(epoch.hypervolume, epoch.number)
            # Not after the last epoch: there is nothing left to save.
            if epoch.number < spec.training.epochs and trial.should_prune():
                raise TrialPruned

    fabric = Engine().start([])
    try:
        fit_spec(
            spec,
            model,
            splits,
            placement=Placement(fabric),
            progress=False,
            on_epoch=prune_if_hopeless,
        )
        validation = batches(splits.validation, EVALUATION_BATCH)
        return float(evaluate(model, spec.tasks(), validation).hypervolume())
    except (TrainingDiverged, NotFinite):
        # An answer too: these settings do not work, and need not be tried again.
        trial.set_user_attr("diverged", True)
        raise TrialPruned from None


def _is_done(study: Any, sweep: Sweep, trials: int) -> bool:
    """Whether there are enough trials that were not lost on the way."""
    ended = _tried(study, _ENDED)
    if sweep.combinations() > trials:
        return len(ended) >= trials
    # By what they tried: two workers that end together may have tried the same.
    return len({repr(sorted(values.items())) for values in ended}) == sweep.combinations()


def _untried(study: Any, sweep: Sweep) -> dict[str, Any]:
    """A combination that no trial has come to the end of; if there is one, that none has begun.

    One that was begun may be with another worker, or lost with a worker that was killed.
    """
    begun, left = _tried(study, ("RUNNING", "WAITING")), _left(study, sweep)
    # At random, so that two workers that look at the same moment rarely choose the same.
    return random.choice([values for values in left if values not in begun] or left)


def _left(study: Any, sweep: Sweep) -> list[dict[str, Any]]:
    """The combinations that no trial has come to the end of."""
    ended = _tried(study, _ENDED)
    every = (
        dict(zip(sweep.ranges, values, strict=True)) for values in product(*sweep.ranges.values())
    )
    return [values for values in every if values not in ended]


def _tried(study: Any, states: Sequence[str]) -> list[dict[str, Any]]:
    """What the trials in one of these states have tried, or are about to."""
    return [
        # A trial that waits has no values yet, only those that it was told to try.
        trial.system_attrs.get("fixed_params", trial.params)
        for trial in study.get_trials(deepcopy=False)
        if trial.state.name in states
    ]


def _open_study(optuna: Any, sweep: Sweep, study_file: Path) -> Any:
    """The study in the file, made there if it is new; the file is only ever appended to."""
    from optuna.storages.journal import JournalFileBackend

    epochs = sweep.spec({}).training.epochs
    try:
        study_file.parent.mkdir(parents=True, exist_ok=True)
        check_target(study_file, _STUDY)
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(study_file)))
        return optuna.create_study(
            storage=storage,
            study_name=sweep.name(),
            direction="maximize",
            load_if_exists=True,
            # constant_liar: what other workers try counts as bad until its score is known, so that
            # they do not all try the same.
            sampler=optuna.samplers.TPESampler(constant_liar=True),
            # Early epochs say little about a run that freezes late.
            pruner=optuna.pruners.MedianPruner(3, n_warmup_steps=max(1, epochs // 3)),
        )
    except UsageError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"cannot use {study_file} as a study file: {error}") from None


def _is_journal(path: Path) -> bool:
    """Optuna appends to whatever file it is given: look before it does."""
    with path.open("rb") as file:
        first = parse_json(file.readline(1 << 16))
    return isinstance(first, dict) and "op_code" in first


_STUDY = Kind("a study", _is_journal)
