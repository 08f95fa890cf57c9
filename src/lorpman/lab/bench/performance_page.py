"""The measured parts of ``docs/performance.md``, written anew from a run's JSON.

A part stands between two comments, ``<!-- bench: table -->`` and ``<!-- end -->``; what is
outside of them is written by people and stays.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from lorpman.errors import UsageError
from lorpman.lab.bench import compile_and_bf16_study, growth_study, rivals_study
from lorpman.lab.bench.table import as_markdown

_PART = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill_page(page: str, described: Mapping[str, Any]) -> str:
    """Write every part that stands between marks anew.

    Args:
        page: The text with the marks.
        described: The JSON of a run of the benchmark.

    Returns:
        The page; what is outside of the marks is as it was.

    Raises:
        UsageError: If a mark names a part that there is not.

    >>> fill_page("<!-- bench: table -->\\n<!-- end -->", {"rows": [], "studies": []})[:27]
    '<!-- bench: table -->\\n\\n| ro'
    """

    def replace(match: re.Match[str]) -> str:
        part = match[2]
        if part not in _PARTS:
            raise UsageError(f"unknown part '{part}'; known: {', '.join(_PARTS)}")
        # Blank lines around it, without which indented text is no block of its own.
        return f"{match[1]}\n{_PARTS[part](described)}\n\n{match[3]}"

    return _PART.sub(replace, page)


def _conditions(described: Mapping[str, Any]) -> str:
    load, machine = described["load"], described["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in described["versions"].items())
    quick = (
        " Quick: fewer rounds, smaller networks, so not for quoting." if described["quick"] else ""
    )
    return (
        f"    {described['command']}\n\n"
        f"{described['started'][:10]}, {described['seconds'] / 60:.0f} minutes; "
        f"{machine['processor']}, {machine['cores']} cores, {described['threads']} threads, "
        f"{described['clock']}; load {load['before'][0]:.1f} before and {load['after'][0]:.1f} "
        f"after; {versions}.{quick}"
    )


def _study(described: Mapping[str, Any], name: str, render: Callable[[Any], str]) -> str:
    for study in described["studies"]:
        if study["name"] == name:
            return render(study["found"]) if study["status"] == "done" else study["note"]
    return "Not part of this run."


_PARTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "conditions": _conditions,
    "table": lambda described: as_markdown(described["rows"]),
    "rivals": lambda described: _study(described, "rivals", rivals_study.markdown),
    "switches": lambda described: _study(described, "switches", compile_and_bf16_study.markdown),
    "growth": lambda described: _study(described, "growth", growth_study.markdown),
}
