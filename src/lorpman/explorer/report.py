"""One HTML file about a run that needs nothing else: no server, no network, no lorpman."""

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from lorpman._files import Kind, near_start, write_bytes
from lorpman.explorer import sentences
from lorpman.explorer.control_words import explain_control
from lorpman.explorer.figures.front_figure import front_figure
from lorpman.explorer.figures.panels import Panel, layer_panels, storage_panel, training_panels
from lorpman.explorer.figures.surfaces import draw_projections
from lorpman.explorer.opened_run import OpenedRun, open_runs
from lorpman.explorer.report_samples import samples_section
from lorpman.front.plot_style import volume_text
from lorpman.lab.problems.problem import Problem

REPORT = Kind("a report", near_start(b"<title>lorpman: "), (".html", ".htm"))
_ASSETS = Path(__file__).parent / "assets"
# Draws the figures, and again when light becomes dark or the window narrow.
_SCRIPT = """
(function () {
  const drawn = JSON.parse(document.getElementById("figures").textContent);
  const options = { displaylogo: false, responsive: true, displayModeBar: false };
  function draw() {
    for (const [name, figure] of Object.entries(drawn)) {
      const dressed = window.lorpmanColours.dressed(figure);
      Plotly.react(document.getElementById(name), dressed.data, dressed.layout, options);
    }
  }
  draw();
  window.lorpmanColours.onChange(draw);
})();
"""


def write_report(
    path: Path, to: Path, problem: Problem | None = None, root: Path | None = None
) -> None:
    """Describe a run in one HTML file.

    Args:
        path: The run's directory.
        to: The file to write.
        problem: What the run was trained on, where that is not built in.
        root: Where datasets are; without it, or without the data, no inputs are shown.

    Raises:
        UsageError: If there is no run with a front, or the file cannot be written.
    """
    (run,) = open_runs([path], root, problem)
    write_bytes(to, report_html(run).encode(), REPORT)


def report_html(run: OpenedRun) -> str:
    """The report as text: the page's look and figures, with plotly itself inside.

    Args:
        run: The run; its weights and data are not needed.
    """
    shown = _panels(run)
    drawn = {f"figure-{panel.name}": panel.figure for panel in shown}
    title = f"{run.origin.problem}, {run.title}"
    return "\n".join(
        [
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>lorpman: {html.escape(title)}</title>",
            f"<style>{_asset('explorer.css')}</style></head><body><div class='page report'>",
            _head(run, title),
            "<main>",
            *(_figure_card(panel) for panel in shown),
            samples_section(run),
            _points_card(run),
            _settings_card(run),
            "</main></div>",
            f'<script type="application/json" id="figures">{_inert_json(drawn)}</script>',
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{_asset('colours.js')}</script>",
            f"<script>{_SCRIPT}</script></body></html>\n",
        ]
    )


def _panels(run: OpenedRun) -> list[Panel]:
    front = run.front
    volume = volume_text(front)
    explained = sentences.explain_hypervolume([volume])
    why = " ".join([sentences.FRONT, f"{volume.capitalize()}.", explained, *explain_control([run])])
    panels = [Panel("front", "What you can have", why, front_figure([run]), "tall")]
    if len(front.tasks) == 3:
        why = "The same front along each axis."
        panels.append(Panel("flat", "From three sides", why, draw_projections([run]), "flat"))
    return [*panels, *training_panels(run), *layer_panels(run), storage_panel([run])]


def _head(run: OpenedRun, title: str) -> str:
    return (
        f'<header><p class="brand">lorpman report</p><h1>{html.escape(title)}</h1>'
        f'<p class="lead">{html.escape(run.origin.summary)}. Method: '
        f"{html.escape(run.origin.method_summary)}.</p>"
        f'<p class="problem">{sentences.PREFERENCE} Scores are on the whole test split.</p>'
        "</header>"
    )


def _figure_card(panel: Panel) -> str:
    wide = " wide" if panel.size in ("tall", "flat") or panel.name == "parameters" else ""
    return (
        f'<section class="card{wide}"><h2>{html.escape(panel.title)}</h2>'
        f'<p class="why">{html.escape(panel.why)}</p>'
        f'<div id="figure-{panel.name}" class="graph {panel.size}"></div></section>'
    )


def _points_card(run: OpenedRun) -> str:
    front = run.front
    best = front.non_dominated_mask().tolist()
    head = ["on the front", *front.tasks, *(f"weight of {task}" for task in front.tasks)]
    rows = [
        ["yes" if bold else "", *(f"{s:.4f}" for s in scores), *(f"{w:.3g}" for w in alpha)]
        for bold, alpha, scores in zip(
            best, front.alphas.tolist(), front.scores.tolist(), strict=True
        )
    ]
    worst = sentences.reference_text(front)
    why = f"Every preference that was scored. The volume counts from: {worst}."
    return _text_card("The points", why, _table(head, rows))


def _settings_card(run: OpenedRun) -> str:
    description = run.description
    settings, versions = _mapping(description, "settings"), _mapping(description, "versions")
    named = ("problem", "method", "seed", "scale", "recipe")
    known = {key: description.get(key) for key in named}
    rows = [[key, "none" if value is None else str(value)] for key, value in known.items()]
    rows.append(["parameters", f"{run.parameters:,}"])
    rows += [[key, json.dumps(value)] for key, value in settings.items()]
    rows += [[f"version of {key}", str(value)] for key, value in versions.items()]
    seconds = sum(epoch.get("seconds", 0.0) for epoch in run.epochs)
    rows.append(["training time", f"{seconds:.0f} s"])
    return _text_card("Settings", "What the run was trained with.", _table(["name", "value"], rows))


def _mapping(description: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A part of ``run.json``; an old or hand-made one may lack it."""
    value = description.get(key)
    return value if isinstance(value, dict) else {}


def _text_card(title: str, why: str, content: str) -> str:
    return (
        f'<section class="card wide"><h2>{title}</h2><p class="why">{html.escape(why)}</p>'
        f'<div class="scroll" tabindex="0">{content}</div></section>'
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _inert_json(value: Any) -> str:
    """JSON that cannot end the element it stands in, as a task called ``</script>`` would."""
    return json.dumps(value).replace("<", "\\u003c")
