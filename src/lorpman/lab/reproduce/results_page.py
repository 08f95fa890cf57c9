"""The page of results: every table and figure of the paper, from the JSONs that are kept.

Nothing is trained and no run directory is read. What people have to say about a table is in
``remarks.md`` beside the JSONs, a section for each, with its status on the first line.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from lorpman._files import read_json
from lorpman.errors import UsageError
from lorpman.lab.reproduce.markdown_table import as_markdown
from lorpman.lab.reproduce.outcome import Outcome, outcome_from_json
from lorpman.lab.reproduce.registry import REPRODUCTIONS, get_reproduction

STATUSES = ("reproduced", "reproduced smaller", "differs", "generated data")
_INTRODUCTION = """\
# Results

Every table and figure of the paper, made again by `lorpman reproduce NAME`. This page is written \
by `make results` from the folder `results`; edit that, not this.

`lorpman reproduce --list` says what each needs and whether it is here. `--scale paper` is the \
full protocol, `--scale laptop` (the default) a reduction that the caption states and that ends \
within an hour on 2 cores. Runs are looked for in the folder `--runs`, by their settings, and \
trained or continued where they are missing, so tables share them; `--no-training` makes do with \
what is there. Columns headed "paper" are the paper's.
"""


@dataclass(frozen=True)
class Remark:
    """What people say of a table or figure."""

    status: str
    """One of :data:`STATUSES`."""
    why: str
    """The sentence that explains the status."""
    more: str = ""
    """Further paragraphs."""


def read_outcome(name: str, results: Path) -> Outcome | None:
    """Read what is kept of a table or figure; None if nothing is.

    Args:
        name: That of the reproduction.
        results: The folder with ``reproduce/NAME.json``.

    Returns:
        The outcome as it was when it was written.

    Raises:
        UsageError: If the JSON is not that of this reproduction.
    """
    path = results / "reproduce" / f"{name}.json"
    if not path.exists():
        return None
    return outcome_from_json(get_reproduction(name), read_json(path, "result"))


def read_remarks(results: Path) -> dict[str, Remark]:
    """Read the remarks on all tables and figures, by name.

    Args:
        results: The folder with ``reproduce/remarks.md``.

    Returns:
        A remark for each section of that file.

    Raises:
        UsageError: If a section does not begin with a status and its reason.
    """
    path = results / "reproduce" / "remarks.md"
    # The group in the pattern keeps the names, so that they alternate with the texts.
    _, *sections = re.split(r"^## (\S+)\n", path.read_text(), flags=re.MULTILINE)
    remarks = {}
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        first, _, more = text.strip().partition("\n")
        match = re.fullmatch(r"Status: ([a-z ]+)\. (.+)", first.strip())
        if match is None or match[1] not in STATUSES:
            known = ", ".join(STATUSES)
            raise UsageError(
                f"{path}: {name} must begin with 'Status: STATUS. Why', STATUS one of {known}"
            )
        remarks[name] = Remark(match[1], match[2], more.strip())
    return remarks


def results_page(results: Path) -> str:
    """The whole page, as Markdown.

    Args:
        results: The folder of the results; its README is the page's last section.

    Returns:
        A summary of all tables and figures, then a section for each that is kept.
    """
    remarks = read_remarks(results)
    outcomes = {name: read_outcome(name, results) for name in REPRODUCTIONS}
    lines = [_INTRODUCTION, "| name | status | scale | seeds |", "|---|---|---|---|"]
    lines += [_summary(name, remarks.get(name), outcome) for name, outcome in outcomes.items()]
    for name, outcome in outcomes.items():
        if outcome is not None:
            lines += ["", *_section(remarks[name], outcome)]
    # Without its heading, which would be a second title of the page.
    closing = (results / "README.md").read_text().split("\n", 1)[1].strip()
    return "\n".join([*lines, "", "## How the results were made", "", closing]) + "\n"


def _summary(name: str, remark: Remark | None, outcome: Outcome | None) -> str:
    if remark is None:
        return f"| {name} | **not run** | | |"
    said = f"**{remark.status}**: {remark.why}"
    if outcome is None:
        # Noise: that the command ran is all that there is to say.
        return f"| {name} | {said} | | |"
    seeds = ", ".join(map(str, outcome.seeds))
    return f"| [{name}](#{name}) | {said} | {outcome.scale} | {seeds} |"


def _section(remark: Remark, outcome: Outcome) -> list[str]:
    name, what = outcome.reproduction.name, outcome.reproduction.what
    lines = [f"## {name}", "", f"**{remark.status.capitalize()}.** {remark.why}", ""]
    lines += [remark.more, ""] if remark.more else []
    lines += [as_markdown(outcome).strip(), ""]
    return [*lines, f"![{what}](../results/reproduce/{name}.png)"]
