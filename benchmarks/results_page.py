"""Write results/reproduce from the runs kept in results, and docs/results.md from both.

    python benchmarks/results_page.py

Nothing is trained: a run that is not there is said to be missing. What people have to say about
a table or figure is in results/reproduce/notes, with its status on the first line.
"""

import json
import re
from pathlib import Path
from typing import Any

from lorpman.lab.reproduce.make import reproduce, write
from lorpman.lab.reproduce.registry import REPRODUCTIONS
from lorpman.lab.reproduce.reproduction import Found

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
MADE = RESULTS / "reproduce"
PAGE = ROOT / "docs" / "results.md"
STATUSES = ("reproduced", "reproduced smaller", "differs", "generated data")


def made_again(name: str) -> Found:
    """A table from the kept runs, at the scale and with the seeds that it was made with."""
    made = _made(name)
    # No data is needed, so none is looked for.
    return reproduce(
        REPRODUCTIONS[name], made["scale"], RESULTS, RESULTS, seeds=made["seeds"], training=False
    )


def page() -> str:
    """``docs/results.md``, from the files in ``results``."""
    names = [name for name in REPRODUCTIONS if (MADE / f"{name}.json").exists()]
    lines = [
        "# Results",
        "",
        "Every table and figure of the paper, made again by `lorpman reproduce NAME`. This page is "
        "written by `make results` from the folder `results`; edit that, not this.",
        "",
        "`lorpman reproduce --list` says what each needs and whether it is here. `--scale paper` "
        "is the full protocol, `--scale laptop` (the default) a reduction that the caption states "
        "and that ends within an hour on 2 cores. Runs are looked for in the folder `--runs`, by "
        "their settings, and trained or continued where they are missing, so tables share them; "
        '`--no-training` makes do with what is there. Columns headed "paper" are the paper\'s.',
        "",
        "| name | status | scale | seeds |",
        "|---|---|---|---|",
        *(_summary(name) for name in REPRODUCTIONS),
    ]
    for name in names:
        status, remark, notes = read_notes(name)
        lines += ["", f"## {name}", "", f"**{status.capitalize()}.** {remark}", ""]
        lines += [*([notes, ""] if notes else []), (MADE / f"{name}.md").read_text().strip(), ""]
        lines += [f"![{_made(name)['what']}](../results/reproduce/{name}.png)"]
    body = (RESULTS / "README.md").read_text().split("\n", 1)[1].strip()
    return "\n".join([*lines, "", "## How the results were made", "", body]) + "\n"


def _summary(name: str) -> str:
    if not (MADE / f"{name}.json").exists():
        return f"| {name} | **not run** | | |"
    made, (status, remark, _) = _made(name), read_notes(name)
    seeds = ", ".join(map(str, made["seeds"]))
    return f"| [{name}](#{name}) | **{status}**: {remark} | {made['scale']} | {seeds} |"


def _made(name: str) -> dict[str, Any]:
    return json.loads((MADE / f"{name}.json").read_text())


def read_notes(name: str) -> tuple[str, str, str]:
    """Status, the sentence that explains it, and further remarks."""
    path = MADE / "notes" / f"{name}.md"
    first, _, rest = path.read_text().partition("\n")
    match = re.fullmatch(r"Status: ([a-z ]+)\. (.+)", first.strip())
    if match is None or match[1] not in STATUSES:
        known = ", ".join(STATUSES)
        raise ValueError(f"{path} must begin with 'Status: STATUS. Why', STATUS one of {known}")
    return match[1], match[2], rest.strip()


def main() -> None:
    for name in REPRODUCTIONS:
        if (MADE / f"{name}.json").exists():
            write(made_again(name), MADE)
            print(MADE / f"{name}.md")
    PAGE.write_text(page())
    print(PAGE)


if __name__ == "__main__":
    main()
