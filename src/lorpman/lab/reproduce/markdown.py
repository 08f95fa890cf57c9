"""A reproduction as Markdown, with the commands that redo it, and as JSON with all fronts."""

import shlex
from typing import Any

from lorpman._files import read_json
from lorpman.lab.reproduce.measures import HYPERVOLUME
from lorpman.lab.reproduce.number_format import measured, millions, printed, spread
from lorpman.lab.reproduce.reproduction import Evidence, Found, Reported, Row
from lorpman.lab.runs.epoch_log import parameters_learned, read_epoch_log
from lorpman.lab.settings import format_assignments

WARNING = "**GENERATED DATA, NO QUALITY CLAIM.**"


def as_markdown(found: Found) -> str:
    """The table, what must be known to read it, and how to make it again."""
    columns = found.reproduction.columns
    head = ["method"]
    for column in columns:
        head += [f"{column.title}, ours", "paper"]
    head += ["parameters, ours", "paper"]
    lines = [_line(head), _line(["---"] + ["---:"] * (len(head) - 1))]
    lines += [_line(_cells(found, row)) for row in found.rows]
    lines += ["", _caption(found), "", *_commands(found)]
    if found.failures:
        lines += ["", *(f"- {run} failed: {why}" for run, why in found.failures.items())]
    return "\n".join(lines) + "\n"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cells(found: Found, row: Row) -> list[str]:
    cells = [row.line.label]
    for column in found.reproduction.columns:
        number = spread(row.values.get(column.key, ()))
        paper = row.reported.get(column.key)
        ours = row.state if number is None else measured(number) + _seeds(found, row)
        cells += [ours, "" if paper is None else printed(paper)]
    count, paper_count = _parameters(row), row.parameters_reported
    cells.append("" if count is None else f"{count:,}")
    return [*cells, "" if paper_count is None else millions(paper_count)]


def _seeds(found: Found, row: Row) -> str:
    """Said in the line where it differs from the caption."""
    if len(row.evidence) == len(found.seeds):
        return ""
    return f" (seeds {', '.join(str(one.spec.seed) for one in row.evidence)} only)"


def _parameters(row: Row) -> int | None:
    if not row.evidence:
        return None
    run = row.evidence[0].run
    return parameters_learned(read_json(run / "run.json", "run"), read_epoch_log(run))


def _caption(found: Found) -> str:
    several = len(found.seeds) > 1
    parts = [
        f"{found.reproduction.what}. Ours: {found.plan.problem}, {found.scale} scale"
        + (f" ({found.reduction})" if found.reduction else " (the paper's protocol)")
        + f", {found.reproduction.columns[0].split} split, "
        + ("mean ± standard deviation of seeds " if several else "seed ")
        + f"{', '.join(map(str, found.seeds))}."
    ]
    if found.generated:
        parts.insert(0, WARNING)
        parts.append("The files are noise in the layout of the real ones: the table shows that "
                     "every step of the protocol runs, and nothing else.")  # fmt: skip
    if not found.comparable:
        problem = found.reproduction.paper.problem
        parts.append(f"The paper's numbers are for its full protocol on {problem}: not comparable.")
    if found.data_note:
        parts.append(found.data_note.rstrip(".") + ".")
    errors = [one.volume[1] for row in found.made for one in row.evidence]
    if max(errors) and HYPERVOLUME in found.reproduction.columns:
        parts.append(f"Hypervolume is sampled, with a standard error of {max(errors):.1g} or less.")
    return " ".join(parts)


def _commands(found: Found) -> list[str]:
    """How to make all of it again, and how to make the cheapest run again."""
    data = " --data DIR" if found.generated else ""
    again = f"lorpman reproduce {found.reproduction.name} --scale {found.scale}"
    if found.seeds != found.plan.seeds:
        again += f" --seeds {','.join(map(str, found.seeds))}"
    lines = [f"All of it again: `{again}{data}`."]
    if found.generated:
        problem = found.plan.problem
        lines[0] += f" DIR is made by `python benchmarks/generated_files.py {problem} DIR`."
    one = min((e for row in found.made for e in row.evidence), key=lambda e: e.seconds)
    volume = measured(Reported(one.volume[0]))
    return [
        *lines,
        f"The cheapest run of it again, {_duration(one.seconds)} here: "
        f"`{train_command(one)}{data}`; for {one.needed.line.label}, seed {one.spec.seed}, "
        f"it prints the test hypervolume {volume}.",
    ]


def train_command(one: Evidence) -> str:
    """What trains one run of a table by itself."""
    parts = ["lorpman", "train", one.spec.problem.name]
    if one.spec.method.name != "lorpman":
        parts += ["--method", one.spec.method.name]
    parts += ["--seed", str(one.spec.seed)]
    if one.spec.scale == "laptop":
        parts += ["--scale", "laptop"]
    for assignment in format_assignments(one.needed.settings):
        parts += ["--set", assignment]
    return shlex.join(parts)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def as_json(found: Found) -> dict[str, Any]:
    """Everything for programs: numbers, runs, and the fronts themselves."""
    return {
        "name": found.reproduction.name,
        "what": found.reproduction.what,
        "problem": found.plan.problem,
        "scale": found.scale,
        "reduction": found.reduction,
        "comparable": found.comparable,
        "generated": found.generated,
        "data": found.data_note,
        "seeds": list(found.seeds),
        "rows": [_row_json(row) for row in found.rows],
        "failures": dict(found.failures),
    }


def _row_json(row: Row) -> dict[str, Any]:
    ours = {key: spread(values) for key, values in row.values.items()}
    return {
        "label": row.line.label,
        "method": row.line.method,
        "state": row.state or "run",
        "ours": {
            key: {"mean": number.mean, "deviation": number.deviation, "by_seed": row.values[key]}
            for key, number in ours.items()
            if number is not None
        },
        "paper": {
            key: {"mean": number.mean, "deviation": number.deviation}
            for key, number in row.reported.items()
        },
        "parameters": {"ours": _parameters(row), "paper": row.parameters_reported},
        "runs": [
            {
                "run": one.run.name,
                "seed": one.spec.seed,
                "seconds": round(one.seconds, 1),
                "front": read_json(one.run / "front.json", "front"),
                "losses": one.losses,
            }
            for one in row.evidence
        ],
    }
