"""The card with the fronts: their picture, a legend, and every point as a table."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html

from lorpman.explorer import sentences
from lorpman.explorer.cards.card_frame import card, extra
from lorpman.explorer.control_words import explain_control
from lorpman.explorer.figures.curves import live_curve
from lorpman.explorer.figures.style import Trace, colour, glyph
from lorpman.explorer.live_run import LiveRun
from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.plot_style import volume_text

GRAPH_OPTIONS: Any = {"displaylogo": False, "responsive": True, "displayModeBar": False}
# A table of more columns fits no screen.
_MOST_TASKS_IN_TABLE = 6
_HINTS = {
    2: "Click a point to move there.",
    3: "Drag to turn, click a point to move there; below, the same along each axis.",
}
_HINT_OF_MANY = (
    "One line per network, one upright axis per task, from its worst score (below) to its "
    "best (above). Click a line to move there; drag over an axis to keep the lines that pass "
    "there, with Shift for further axes, double-click to see all again."
)


def front_card(runs: Sequence[OpenedRun], live_runs: Mapping[str, LiveRun]) -> Any:
    """The card as it stands before anything moves; the page's script draws into it.

    Args:
        runs: The runs on the page.
        live_runs: Those of them that can be evaluated, by key.
    """
    count = len(runs[0].front.tasks)
    hint = _HINTS.get(count, _HINT_OF_MANY)
    graphs = [
        _graph("front", "graph tall"),
        _graph("flat", "graph flat" if count == 3 else "absent"),
    ]
    return card(
        "What you can have",
        _legend(runs),
        html.Div(graphs, className="graphs", id="graphs"),
        html.P(hint + _live_hint(runs, live_runs), className="hint"),
        html.Button("Show all lines", id="unbrush", className="small" if count > 3 else "absent"),
        html.P([html.Span("◆ ", className="you"), html.Span(id="where")], className="hint"),
        *(html.P(sentence, className="why control") for sentence in explain_control(runs)),
        _points_table(runs),
        name="front",
        why=sentences.FRONT,
    )


def live_curves(runs: Sequence[OpenedRun], live_runs: Mapping[str, LiveRun]) -> list[Trace]:
    """The lines that points move on, where there are two tasks and evaluating is quick.

    Args:
        runs: The runs on the page.
        live_runs: Those of them that can be evaluated, by key.
    """
    fronts = {key: live.front for key, live in live_runs.items() if live.front is not None}
    return [live_curve(run, fronts[run.key]) for run in runs if run.key in fronts]


def _graph(name: str, kind: str) -> Any:
    return dcc.Graph(id=name, config=GRAPH_OPTIONS, className=kind, responsive=True)


def _live_hint(runs: Sequence[OpenedRun], live_runs: Mapping[str, LiveRun]) -> str:
    """Why the moving point need not lie on the line through the stored ones."""
    live = next(iter(live_runs.values()), None)
    if live is None or live.whole:
        return ""
    dotted = "; dotted, the line it moves on" if live_curves(runs, live_runs) else ""
    return (
        f" Points: scores on all {live.all_samples:,} {runs[0].data_words}. The diamond: on the "
        f"first {live.held_samples:,} of them, so that it can move at once{dotted}."
    )


def _legend(runs: Sequence[OpenedRun]) -> Any:
    """The runs with their colours, to show and hide, and which of them is moved."""
    volumes = [volume_text(run.front) for run in runs]
    shown = dcc.Checklist(
        id="shown",
        options=[
            {"label": _legend_label(place, run, volume), "value": run.key}
            for place, (run, volume) in enumerate(zip(runs, volumes, strict=True))
        ],
        value=[run.key for run in runs],
        className="legend",
        inline=True,
    )
    moved = dcc.RadioItems(
        id="run",
        options=[{"label": run.title, "value": run.key} for run in runs],
        value=runs[0].key,
        className="legend",
        inline=True,
    )
    return html.Div(
        [
            html.Div(
                [html.Span("Shown", className="label", id="shown-label"), shown], className="row"
            ),
            html.Div(
                [html.Span("Moved", className="label", id="run-label"), moved],
                className="row" if len(runs) > 1 else "absent",
            ),
            html.P(
                f"{sentences.explain_hypervolume(volumes)} The worst acceptable scores here: "
                f"{sentences.reference_text(runs[0].front)}.",
                className="why",
            ),
        ]
    )


def _legend_label(place: int, run: OpenedRun, volume: str) -> Any:
    """The sign, title and hypervolume of the run at ``place``."""
    swatch = html.Span(
        glyph(place, len(run.front.tasks)),
        className="swatch",
        style={"color": colour(place)},
        **extra("aria", hidden="true"),
    )
    return html.Span([swatch, html.Span(run.title), html.Span(volume, className="volume")])


def _points_table(runs: Sequence[OpenedRun]) -> Any:
    """Every stored point, for readers and for keys where a click on the picture is not."""
    tasks = runs[0].front.tasks
    if len(tasks) > _MOST_TASKS_IN_TABLE:
        return None
    rows = []
    for run in runs:
        points = zip(run.front.alphas.tolist(), run.front.scores.tolist(), strict=True)
        for place, (alpha, scores) in enumerate(points):
            weights = json.dumps([round(w, 4) for w in alpha])
            button = html.Button(
                "move here",
                className="small",
                **extra(run=run.key, place=str(place), alpha=weights),
            )
            cells = [run.title, *(f"{w:.3g}" for w in alpha), *(f"{s:.4f}" for s in scores)]
            rows.append(html.Tr([*(html.Td(cell) for cell in cells), html.Td(button)]))
    head = ["run", *(f"weight of {t}" for t in tasks), *tasks, ""]
    table = html.Table(
        [html.Thead(html.Tr([html.Th(cell, scope="col") for cell in head])), html.Tbody(rows)]
    )
    return html.Details(
        [html.Summary("The points as a table"), html.Div(table, className="scroll")]
    )
