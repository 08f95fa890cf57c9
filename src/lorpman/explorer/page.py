"""What stands on the explorer page, before anything moves."""

import json
from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from lorpman.explorer import front_figures, panels, sentences
from lorpman.explorer.control_cards import card, demand_card, extra, preference_card, take_card
from lorpman.explorer.live_evaluation import Live
from lorpman.explorer.opened_run import Opened
from lorpman.front.plot_style import volume_text

_GRAPH: Any = {"displaylogo": False, "responsive": True, "displayModeBar": False}


def layout(runs: Sequence[Opened], lives: dict[str, Live]) -> Any:
    """The whole page; the same for every window."""
    problem, front = runs[0].spec.problem, runs[0].front
    return html.Div(
        [
            _stores(runs, lives),
            html.A("Skip to your preference", href="#preference-card", className="skip"),
            html.Header(
                [
                    html.P("lorpman explorer", className="brand"),
                    html.H1("How much should each task matter?"),
                    html.P(
                        "One training run learned many networks at once. Say how much each task "
                        "matters, see what that gains and costs, and take away the network you "
                        "want.",
                        className="lead",
                    ),
                    html.P([html.B(problem.name), f": {problem.summary}"], className="problem"),
                ]
            ),
            html.P(id="notice", className="notice", role="status"),
            html.Main(
                [
                    html.Div([_front_card(runs, lives), demand_card(front)], className="column"),
                    html.Div([preference_card(runs), take_card()], className="column side"),
                    _samples_card(),
                    _inside_card(runs),
                ]
            ),
            html.Footer(_footer(runs, lives)),
        ],
        className="page",
    )


def _stores(runs: Sequence[Opened], lives: dict[str, Live]) -> Any:
    worst, best = front_figures.limits(runs)
    facts = [
        {
            "key": run.key,
            "title": run.title,
            "mode": run.mode,
            "moving": sentences.moving(run),
            "alphas": run.front.alphas.tolist(),
            "scores": run.front.scores.tolist(),
        }
        for run in runs
    ]
    ends = {"tasks": list(runs[0].front.tasks), "worst": worst, "best": best}
    names = ("preference", "picked", "asked", "now", "found", "brush", "look", "address")
    return html.Div(
        [
            *(dcc.Store(id=name) for name in names),
            dcc.Store(id="runs", data=facts),
            dcc.Store(id="ends", data=ends),
            dcc.Store(id="drawn", data=front_figures.front_figure(runs)),
            dcc.Store(
                id="drawn-flat",
                data=front_figures.projections(runs) if len(runs[0].front.tasks) == 3 else None,
            ),
            dcc.Store(id="curves", data=_curves(runs, lives)),
        ]
    )


def _curves(runs: Sequence[Opened], lives: dict[str, Live]) -> list[Any]:
    """The lines that points move on, where there are two tasks and evaluating is quick."""
    fronts = {key: live.front for key, live in lives.items() if live.front is not None}
    return [front_figures.live_curve(run, fronts[run.key]) for run in runs if run.key in fronts]


def _front_card(runs: Sequence[Opened], lives: dict[str, Live]) -> Any:
    count = len(runs[0].front.tasks)
    graphs = [
        dcc.Graph(
            id="front",
            config=_GRAPH,
            className="graph tall",
            responsive=True,
        ),
        dcc.Graph(
            id="flat",
            config=_GRAPH,
            className="graph flat" if count == 3 else "absent",
            responsive=True,
        ),
    ]
    hint = {
        2: "Click a point to move there.",
        3: "Drag to turn, click a point to move there; below, the same along each axis.",
    }.get(
        count,
        "One line per network, one upright axis per task, from its worst score (below) to its "
        "best (above). Click a line to move there; drag over an axis to keep the lines that pass "
        "there, with Shift for further axes, double-click to see all again.",
    )
    return card(
        "What you can have",
        _legend(runs),
        html.Div(graphs, className="graphs", id="graphs"),
        html.P(hint + _live_hint(runs, lives), className="hint"),
        html.Button("Show all lines", id="unbrush", className="small" if count > 3 else "absent"),
        html.P([html.Span("◆ ", className="you"), html.Span(id="where")], className="hint"),
        _points_table(runs),
        name="front",
        why=sentences.FRONT,
    )


def _live_hint(runs: Sequence[Opened], lives: dict[str, Live]) -> str:
    """Why the moving point need not lie on the line through the stored ones."""
    live = next(iter(lives.values()), None)
    if live is None or live.whole:
        return ""
    dotted = "; dotted, the line it moves on" if _curves(runs, lives) else ""
    return (
        f" Points: scores on all {live.all_samples:,} test samples. The diamond: on the first "
        f"{live.held_samples:,} of them, so that it can move at once{dotted}."
    )


def _legend(runs: Sequence[Opened]) -> Any:
    """The runs with their colours, to show and hide, and which of them is moved."""
    volumes = [volume_text(run.front) for run in runs]
    options = [
        {
            "label": html.Span(
                [
                    html.Span(
                        front_figures.glyph(k, len(run.front.tasks)),
                        className="swatch",
                        style={"color": front_figures.colour(k)},
                        **extra("aria", hidden="true"),
                    ),
                    html.Span(run.title),
                    html.Span(volume, className="volume"),
                ]
            ),
            "value": run.key,
        }
        for k, (run, volume) in enumerate(zip(runs, volumes, strict=True))
    ]
    keys = [run.key for run in runs]
    return html.Div(
        [
            html.Div(
                [
                    html.Span("Shown", className="label", id="shown-label"),
                    dcc.Checklist(
                        id="shown", options=options, value=keys, className="legend", inline=True
                    ),
                ],
                className="row",
            ),
            html.Div(
                [
                    html.Span("Moved", className="label", id="run-label"),
                    dcc.RadioItems(
                        id="run",
                        options=[{"label": run.title, "value": run.key} for run in runs],
                        value=keys[0],
                        className="legend",
                        inline=True,
                    ),
                ],
                className="row" if len(runs) > 1 else "absent",
            ),
            html.P(
                f"{sentences.volume(volumes)} The worst acceptable scores here: "
                f"{sentences.reference(runs[0].front)}.",
                className="why",
            ),
        ]
    )


def _points_table(runs: Sequence[Opened]) -> Any:
    """Every stored point, for readers and for keys where a click on the picture is not."""
    tasks = runs[0].front.tasks
    if len(tasks) > 6:
        return None
    rows = []
    for run in runs:
        points = zip(run.front.alphas.tolist(), run.front.scores.tolist(), strict=True)
        for place, (alpha, scores) in enumerate(points):
            button = html.Button(
                "move here",
                className="small",
                **extra(
                    run=run.key,
                    place=str(place),
                    alpha=json.dumps([round(w, 4) for w in alpha]),
                ),
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


def _samples_card() -> Any:
    return card(
        "Real inputs",
        html.Div(id="samples", className="samples"),
        name="samples",
        why="Held-out inputs that no network saw in training, and what the network at your "
        "preference makes of them. Framed: its answer differs from that with all weights equal.",
    )


def _inside_card(runs: Sequence[Opened]) -> Any:
    parts = [
        html.Details([html.Summary(run.title), *_inside(run)], open=run is runs[0]) for run in runs
    ]
    return card(
        "Inside",
        _panel(panels.cost(runs), ""),
        *parts,
        name="inside",
        why="How training went, and what the run learned.",
    )


def _inside(run: Opened) -> list[Any]:
    shown = [_panel(panel, run.key) for panel in (*panels.training(run), *panels.learned(run))]
    missing = f"Its layers cannot be shown: {run.still}." if run.model is None else ""
    return [html.Div(shown, className="panels"), html.P(missing, className="hint")]


def _panel(panel: panels.Panel, key: str) -> Any:
    graph = dcc.Graph(
        id={"type": "inside", "index": f"{key}-{panel.name}"},
        figure=panel.figure,
        config=_GRAPH,
        className=f"graph {panel.size}",
        responsive=True,
    )
    return html.Div(
        [html.H3(panel.title), html.P(panel.why, className="why"), graph], className="panel"
    )


def _footer(runs: Sequence[Opened], lives: dict[str, Live]) -> Any:
    live = next(iter(lives.values()), None)
    held = f" The moving point: {live.held_text}." if live is not None else ""
    note = next((run.splits.note for run in runs if run.splits is not None), "")
    return html.P(
        [f"Fronts: scores on the whole test split.{held} ", f"Data: {note}. " if note else ""]
    )
