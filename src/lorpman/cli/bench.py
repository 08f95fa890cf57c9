"""``lorpman bench``: speed and memory, as ratios in one run."""

import os
from pathlib import Path
from typing import Annotated

import typer

from lorpman.cli.options import DataDirectory
from lorpman.errors import UsageError


def bench(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer rounds and smaller networks: two minutes.")
    ] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to write.")] = Path("runs/bench"),
    only: Annotated[
        str | None, typer.Option(metavar="ROW,...", help="These parts only; see the table.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="With 1, processor time is taken [default: torch's own].")
    ] = None,
    data: DataDirectory = None,
) -> None:
    """Measure what a front costs beside plain training; print a table, write JSON and pictures."""
    from lorpman.lab.bench.all_rows import ROWS
    from lorpman.lab.bench.all_studies import STUDIES
    from lorpman.lab.bench.measure import RESULTS, choose, run
    from lorpman.lab.bench.pictures import draw
    from lorpman.lab.bench.table import as_text
    from lorpman.lab.bench.timing import Conditions
    from lorpman.lab.runs.directory import data_root

    chosen = choose(only, [part.name for part in (*ROWS, *STUDIES)])
    conditions = Conditions(_threads(threads), quick, data_root(data))
    _make(out)
    report = run(
        [row for row in ROWS if row.name in chosen],
        [study for study in STUDIES if study.name in chosen],
        conditions,
        out,
        lambda line: typer.echo(f"lorpman: {line}", err=True),
    )
    described = report.as_json()
    if described["rows"]:
        typer.echo(as_text(described["rows"]))
    for picture in draw(described, out):
        typer.echo(f"picture  {picture}")
    typer.echo(f"numbers  {out / RESULTS}")
    if failed := report.failures():
        typer.echo(f"lorpman: failed: {', '.join(failed)}; see {out / RESULTS}", err=True)
        raise typer.Exit(1)


def _threads(asked: int | None) -> int:
    import torch

    cores = os.cpu_count() or 1
    if asked is None:
        return torch.get_num_threads()
    if not 1 <= asked <= cores:
        raise UsageError(f"--threads must be between 1 and {cores} (the cores here), got {asked}")
    return asked


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None
