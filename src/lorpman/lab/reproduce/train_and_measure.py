"""Make a table or figure: train the runs that are missing, measure all of them, write."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lorpman._files import write_bytes
from lorpman.errors import UsageError
from lorpman.lab.compare import shared_front
from lorpman.lab.comparison_table import TABLE, TABLE_DATA
from lorpman.lab.isolated_training import try_training
from lorpman.lab.reproduce.data_requirements import check_data, is_generated, runs_folder
from lorpman.lab.reproduce.markdown_table import as_markdown
from lorpman.lab.reproduce.measures import data_note
from lorpman.lab.reproduce.outcome import MeasuredLine, Outcome
from lorpman.lab.reproduce.reproduction import (
    FinishedRun,
    Line,
    PlannedRun,
    Reproduction,
)
from lorpman.lab.reproduce.run_record import RunRecord, compact_json, record_run
from lorpman.lab.runs.directory import epochs_done, read_spec
from lorpman.lab.runs.epoch_log import read_epoch_log
from lorpman.lab.runs.spec import Scale, Spec

Tell = Callable[[str], None]


def reproduce(
    reproduction: Reproduction,
    scale: Scale,
    runs: Path,
    data_root: Path,
    *,
    seeds: Sequence[int] | None = None,
    training: bool = True,
    isolate: bool = True,
    tell: Tell | None = None,
) -> Outcome:
    """Train what the problem's folder in ``runs`` lacks, and measure every run.

    Runs are found by their settings, whatever made them, so tables share them; one that was
    interrupted goes on.

    Args:
        reproduction: The table or figure.
        scale: That of the protocol.
        runs: Where run directories are, in a folder for each problem.
        data_root: Where datasets are.
        seeds: Instead of those that the plan names.
        training: Whether missing runs are trained; if not, they are said to be missing.
        isolate: Whether every training has a process of its own.
        tell: Called with a line as each training begins.

    Returns:
        What was measured, by line.

    Raises:
        UsageError: If the data is missing, or there is no finished run at all.
    """
    plan = reproduction.plan(scale)
    chosen = tuple(plan.seeds if seeds is None else seeds)
    folder = runs_folder(runs, plan.problem, data_root)
    planned = reproduction.planned_runs(scale, chosen, is_generated(folder))
    there = {one: run for one in planned if (run := _find(folder, one.spec)) is not None}
    failures: dict[str, str] = {}
    if training and len(there) < len(planned):
        # Once, instead of one failure per run.
        check_data(plan.problem, data_root)
        missing = [one for one in planned if one not in there]
        new, failures = _train(missing, folder, data_root, isolate, tell)
        there |= new
    if not there:
        raise UsageError(_nothing(reproduction, scale, folder, failures))
    finished = [
        FinishedRun(run, one, shared_front(one.spec, run, data_root), data_root)
        for one, run in there.items()
    ]
    return Outcome(
        reproduction=reproduction,
        scale=scale,
        seeds=chosen,
        lines=tuple(_measure(reproduction, line, scale, finished) for line in reproduction.lines),
        data_note=data_note(finished[0]),
        generated=is_generated(folder),
        failures=failures,
    )


def write(outcome: Outcome, out: Path) -> list[Path]:
    """Write the table as Markdown, everything as JSON, and the picture.

    Args:
        outcome: What to write.
        out: The folder, which is made if it is missing; files are called as the reproduction is.

    Returns:
        The three files.

    Raises:
        UsageError: If the folder cannot be written to.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None
    paths = [out / f"{outcome.reproduction.name}.{suffix}" for suffix in ("md", "json", "png")]
    write_bytes(paths[0], as_markdown(outcome).encode(), TABLE)
    write_bytes(paths[1], compact_json(outcome.to_json()).encode(), TABLE_DATA)
    outcome.reproduction.draw(outcome, paths[2])
    return paths


def _nothing(
    reproduction: Reproduction, scale: Scale, folder: Path, failures: Mapping[str, str]
) -> str:
    if failures:
        return next(iter(failures.values()))
    return (
        f"{folder} holds no finished run of {reproduction.name} at {scale} scale; "
        "leave out --no-training to train them"
    )


def _find(folder: Path, spec: Spec) -> Path | None:
    """The finished run with these settings, if there is one."""
    for run in _candidates(folder, spec):
        if _is_finished(run, spec):
            return run
    return None


def _candidates(folder: Path, spec: Spec) -> list[Path]:
    """Every directory with these settings; what cannot be read is another run."""
    same = []
    for described in sorted(folder.glob(f"{spec.method.name}-*/run.json")):
        with suppress(UsageError):
            if read_spec(described.parent).identity() == spec.identity():
                same.append(described.parent)
    return same


def _is_finished(run: Path, spec: Spec) -> bool:
    if not (run / "front.json").exists():
        return False
    if (run / "checkpoint.safetensors").exists():
        return epochs_done(run) >= spec.training.epochs
    # Kept without its weights: its notes say how far it came.
    notes = read_epoch_log(run)
    return bool(notes) and notes[-1]["number"] >= spec.training.epochs


def _train(
    missing: Sequence[PlannedRun], folder: Path, data_root: Path, isolate: bool, tell: Tell | None
) -> tuple[dict[PlannedRun, Path], dict[str, str]]:
    """One run after the other; one that fails does not stop the others."""
    new: dict[PlannedRun, Path] = {}
    failures: dict[str, str] = {}
    for place, one in enumerate(missing, start=1):
        # One that was interrupted goes on, even if it has another name.
        begun = _candidates(folder, one.spec)
        run = begun[0] if begun else _free(folder / one.name)
        if tell:
            tell(f"{run} ({place} of {len(missing)})")
        reason = try_training(one.spec, run, data_root, isolate, progress=tell is not None)
        if reason is None:
            new[one] = run
        else:
            failures[run.name] = reason
    return new, failures


def _free(wanted: Path) -> Path:
    """``wanted``, or with a number if another run has that name."""
    run, number = wanted, 2
    while run.exists():
        run, number = wanted.with_name(f"{wanted.name}-{number}"), number + 1
    return run


def _measure(
    reproduction: Reproduction, line: Line, scale: Scale, finished: Sequence[FinishedRun]
) -> MeasuredLine:
    records = [_record(reproduction, run) for run in finished if run.planned.line is line]
    absent = "not at this scale" if line.settings(scale) is None else "not run"
    return MeasuredLine(line, records, "" if records else absent)


def _record(reproduction: Reproduction, run: FinishedRun) -> RunRecord:
    values = {column.key: column.measure(run) for column in reproduction.columns}
    return record_run(run.directory, run.planned.changes, values, reproduction.history)
