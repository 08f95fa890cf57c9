"""Make a table or figure: train the runs that are missing, measure all of them, write."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from lorpman._files import write_bytes
from lorpman.errors import UsageError
from lorpman.lab.compare import shared_front
from lorpman.lab.isolated_training import try_training
from lorpman.lab.reproduce.markdown import as_json, as_markdown
from lorpman.lab.reproduce.measures import data_note
from lorpman.lab.reproduce.reproduction import Evidence, Found, Line, Needed, Reproduction, Row
from lorpman.lab.reproduce.requirements import check_data, is_generated, runs_folder
from lorpman.lab.runs.directory import epochs_done, read_spec
from lorpman.lab.runs.epoch_log import read_epoch_log
from lorpman.lab.runs.spec import Scale, Spec

Tell = Callable[[str], None]


def reproduce(
    reproduction: Reproduction,
    scale: Scale,
    runs: Path,
    root: Path,
    *,
    seeds: Sequence[int] | None = None,
    training: bool = True,
    isolate: bool = True,
    tell: Tell | None = None,
) -> Found:
    """Train what the problem's folder in ``runs`` lacks, and measure every run.

    Runs are found by their settings, whatever made them, so tables share them; one that was
    interrupted goes on. Without ``training``, what is missing is said to be missing.
    """
    plan = reproduction.plan(scale)
    chosen = tuple(plan.seeds if seeds is None else seeds)
    folder = runs_folder(runs, plan.problem, root)
    needed = reproduction.needed(scale, chosen, is_generated(folder))
    there = {one: run for one in needed if (run := _find(folder, one.spec)) is not None}
    failures: dict[str, str] = {}
    if training and len(there) < len(needed):
        check_data(plan.problem, root)
        new, failures = _train(
            [one for one in needed if one not in there], folder, root, isolate, tell
        )
        there |= new
    if not there:
        raise UsageError(_nothing(reproduction, scale, folder, failures))
    evidence = [
        Evidence(run, one, shared_front(one.spec, run, root), root) for one, run in there.items()
    ]
    return Found(
        reproduction=reproduction,
        scale=scale,
        seeds=chosen,
        rows=tuple(_row(reproduction, line, scale, evidence) for line in reproduction.lines),
        data_note=data_note(evidence[0]),
        generated=is_generated(folder),
        failures=failures,
    )


def write(found: Found, out: Path) -> list[Path]:
    """The table as Markdown, everything as JSON, and the picture, all called as the row is."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None
    paths = [out / f"{found.reproduction.name}.{suffix}" for suffix in ("md", "json", "png")]
    write_bytes(paths[0], as_markdown(found).encode())
    # On one line: indented, every score of every front would have a line of its own.
    write_bytes(paths[1], (json.dumps(as_json(found)) + "\n").encode())
    found.reproduction.draw(found, paths[2])
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
    found = []
    for described in sorted(folder.glob(f"{spec.method.name}-*/run.json")):
        with suppress(UsageError):
            if read_spec(described.parent).identity() == spec.identity():
                found.append(described.parent)
    return found


def _is_finished(run: Path, spec: Spec) -> bool:
    if not (run / "front.json").exists():
        return False
    if (run / "checkpoint.safetensors").exists():
        return epochs_done(run) >= spec.training.epochs
    # Kept without its weights: its notes say how far it came.
    notes = read_epoch_log(run)
    return bool(notes) and notes[-1]["number"] >= spec.training.epochs


def _train(
    missing: Sequence[Needed], folder: Path, root: Path, isolate: bool, tell: Tell | None
) -> tuple[dict[Needed, Path], dict[str, str]]:
    """One run after the other; one that fails does not stop the others."""
    new: dict[Needed, Path] = {}
    failures: dict[str, str] = {}
    for place, one in enumerate(missing, start=1):
        begun = _candidates(folder, one.spec)
        run = begun[0] if begun else _free(folder / one.name)
        if tell:
            tell(f"{run} ({place} of {len(missing)})")
        reason = try_training(one.spec, run, root, isolate, progress=tell is not None)
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


def _row(reproduction: Reproduction, line: Line, scale: Scale, evidence: Sequence[Evidence]) -> Row:
    own = [one for one in evidence if one.needed.line is line]
    values = {
        column.key: tuple(column.measure(one) for one in own)
        for column in reproduction.columns
        if own
    }
    reported, parameters = reproduction.reported(line)
    absent = "not at this scale" if line.settings(scale) is None else "not run"
    return Row(line, own, values, reported, parameters, "" if own else absent)
