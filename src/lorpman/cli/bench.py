"""``lorpman bench``: speed and memory, as ratios in one run."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lorpman.cli.options import DataDirectory
from lorpman.cli.output import print_field, warn
from lorpman.errors import UsageError

if TYPE_CHECKING:
    from lorpman.lab.bench.benchmark_row import BenchmarkRow

_Problem = Annotated[
    str | None,
    typer.Argument(metavar="[PROBLEM]", help="A name, mine.py or package.module:NAME"),
]
_Quick = Annotated[
    bool, typer.Option("--quick", help="Fewer rounds and smaller networks: two minutes.")
]
_Out = Annotated[Path, typer.Option(metavar="DIR", help="Where to write.")]
_Only = Annotated[
    str | None, typer.Option(metavar="ROW,...", help="These parts only; see the table.")
]
_Threads = Annotated[
    int | None, typer.Option(help="With 1, processor time is taken [default: torch's own].")
]


def bench(
    problem: _Problem = None,
    quick: _Quick = False,
    out: _Out = Path("runs/bench"),
    only: _Only = None,
    threads: _Threads = None,
    data: DataDirectory = None,
) -> None:
    """Measure what a front costs beside plain training; print a table, write JSON and pictures.

    With PROBLEM, a training step on it; without, every part of our own benchmark.
    """
    from lorpman.lab.bench.pictures import draw
    from lorpman.lab.bench.registry import ROWS, STUDIES
    from lorpman.lab.bench.run_benchmark import RESULTS, choose_parts, run_benchmark
    from lorpman.lab.bench.table import as_text
    from lorpman.lab.bench.timing import Conditions
    from lorpman.lab.runs.directory import data_root

    rows, studies = (ROWS, STUDIES) if problem is None else ((_row_of(problem),), ())
    chosen = choose_parts(only, [part.name for part in (*rows, *studies)])
    conditions = Conditions(_count_threads(threads), quick, data_root(data))
    _make_folder(out)
    report = run_benchmark(
        [row for row in rows if row.name in chosen],
        [study for study in studies if study.name in chosen],
        conditions,
        out,
        warn,
    )
    described = report.as_json()
    if described["rows"]:
        typer.echo(as_text(described["rows"]))
    for picture in draw(described, out):
        print_field("picture", picture, 9)
    print_field("numbers", out / RESULTS, 9)
    if failed := report.failures():
        warn(f"failed: {', '.join(failed)}; see {out / RESULTS}")
        raise typer.Exit(1)


def _row_of(problem: str) -> "BenchmarkRow":
    """The one row about a problem."""
    from lorpman.lab.bench.problem_row import problem_row
    from lorpman.lab.problems.own_problem import find_problem

    return problem_row(find_problem(problem))


def _count_threads(asked: int | None) -> int:
    """How many threads to measure with: those asked for, else torch's own number."""
    import torch

    cores = os.cpu_count() or 1
    if asked is None:
        return torch.get_num_threads()
    if not 1 <= asked <= cores:
        raise UsageError(f"--threads must be between 1 and {cores} (the cores here), got {asked}")
    return asked


def _make_folder(out: Path) -> None:
    """Make the folder of the results now: minutes of measuring must not end at a wrong path."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {out}: {error.strerror or error}") from None
