"""The table of a reproduction as Markdown, with the commands that make it again."""

import shlex

from lorpman.lab.reproduce.measures import HYPERVOLUME
from lorpman.lab.reproduce.number_format import (
    format_millions,
    format_ours,
    format_paper,
    spread,
)
from lorpman.lab.reproduce.outcome import MeasuredLine, Outcome
from lorpman.lab.reproduce.reproduction import Reported
from lorpman.lab.reproduce.run_record import RunRecord
from lorpman.lab.settings import format_assignments

WARNING = "**GENERATED DATA, NO QUALITY CLAIM.**"


def as_markdown(outcome: Outcome) -> str:
    """The table, what must be known to read it, and how to make it again.

    Args:
        outcome: What was measured.
    """
    columns = outcome.reproduction.columns
    head = ["method"]
    for column in columns:
        head += [f"{column.title}, ours", "paper"]
    head += ["parameters, ours", "paper"]
    lines = [_line(head), _line(["---"] + ["---:"] * (len(head) - 1))]
    lines += [_line(_cells(outcome, measured)) for measured in outcome.lines]
    lines += ["", _caption(outcome), "", *_commands(outcome)]
    if outcome.failures:
        lines += ["", *(f"- {run} failed: {why}" for run, why in outcome.failures.items())]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(outcome: Outcome, measured: MeasuredLine) -> list[str]:
    reported, paper_parameters = outcome.reproduction.reported(measured.line)
    cells = [measured.line.label]
    for column in outcome.reproduction.columns:
        number = spread(measured.values(column.key))
        paper = reported.get(column.key)
        if number is None:
            cells.append(measured.state)
        else:
            cells.append(format_ours(number) + _missing_seeds(outcome, measured))
        cells.append("" if paper is None else format_paper(paper))
    count = measured.parameters
    cells.append("" if count is None else f"{count:,}")
    return [*cells, "" if paper_parameters is None else format_millions(paper_parameters)]


def _missing_seeds(outcome: Outcome, measured: MeasuredLine) -> str:
    """Which seeds there are, said in the line where it differs from the caption."""
    if len(measured.records) == len(outcome.seeds):
        return ""
    return f" (seeds {', '.join(str(record.seed) for record in measured.records)} only)"


def _caption(outcome: Outcome) -> str:
    several = len(outcome.seeds) > 1
    parts = [
        f"{outcome.reproduction.what}. Ours: {outcome.plan.problem}, {outcome.scale} scale"
        + (f" ({outcome.reduction})" if outcome.reduction else " (the paper's protocol)")
        + f", {outcome.reproduction.columns[0].split} split, "
        + ("mean ± standard deviation of seeds " if several else "seed ")
        + f"{', '.join(map(str, outcome.seeds))}."
    ]
    if outcome.generated:
        parts.insert(0, WARNING)
        parts.append("The files are noise in the layout of the real ones: the table shows that "
                     "every step of the protocol runs, and nothing else.")  # fmt: skip
    if not outcome.comparable:
        problem = outcome.reproduction.paper.problem
        parts.append(f"The paper's numbers are for its full protocol on {problem}: not comparable.")
    if outcome.data_note:
        parts.append(outcome.data_note.rstrip(".") + ".")
    error = max(record.hypervolume_error for record in outcome.records)
    if error and HYPERVOLUME in outcome.reproduction.columns:
        parts.append(f"Hypervolume is sampled, with a standard error of {error:.1g} or less.")
    return " ".join(parts)


def _commands(outcome: Outcome) -> list[str]:
    """How to make all of it again, and how to make the cheapest run again."""
    everything = f"All of it again: `{outcome.command}`."
    if outcome.generated:
        problem = outcome.plan.problem
        everything += f" DIR is made by `python benchmarks/generated_files.py {problem} DIR`."
    pairs = [(line.line.label, record) for line in outcome.made for record in line.records]
    # The one that a reader can check in the shortest time.
    label, cheapest = min(pairs, key=lambda pair: pair[1].seconds)
    volume = format_ours(Reported(cheapest.hypervolume))
    data = " --data DIR" if outcome.generated else ""
    return [
        everything,
        f"The cheapest run of it again, {_duration(cheapest.seconds)} here: "
        f"`{train_command(cheapest)}{data}`; for {label}, seed {cheapest.seed}, "
        f"it prints the test hypervolume {volume}.",
    ]


def train_command(record: RunRecord) -> str:
    """The command that trains one run of a table by itself.

    Args:
        record: The run.
    """
    parts = ["lorpman", "train", record.problem]
    if record.method != "lorpman":
        parts += ["--method", record.method]
    parts += ["--seed", str(record.seed)]
    if record.scale == "laptop":
        parts += ["--scale", "laptop"]
    for assignment in format_assignments(record.changes):
        parts += ["--set", assignment]
    return shlex.join(parts)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
