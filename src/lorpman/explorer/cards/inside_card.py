"""The card about the inside of runs: how training went, and what was learned."""

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from lorpman.explorer.cards.card_frame import card
from lorpman.explorer.cards.front_card import GRAPH_OPTIONS
from lorpman.explorer.figures.panels import Panel, layer_panels, storage_panel, training_panels
from lorpman.explorer.opened_run import OpenedRun


def inside_card(runs: Sequence[OpenedRun]) -> Any:
    """What runs cost to store and, folded away for all but the first, each one's own figures.

    Args:
        runs: The runs on the page.
    """
    parts = [
        html.Details([html.Summary(run.title), *_details(run)], open=run is runs[0]) for run in runs
    ]
    return card(
        "Inside",
        _panel(storage_panel(runs), ""),
        *parts,
        name="inside",
        why="How training went, and what the run learned.",
    )


def _details(run: OpenedRun) -> list[Any]:
    panels = [_panel(panel, run.key) for panel in (*training_panels(run), *layer_panels(run))]
    missing = f"Its layers cannot be shown: {run.why_not_live}." if run.model is None else ""
    return [html.Div(panels, className="panels"), html.P(missing, className="hint")]


def _panel(panel: Panel, key: str) -> Any:
    graph = dcc.Graph(
        id={"type": "inside", "index": f"{key}-{panel.name}"},
        figure=panel.figure,
        config=GRAPH_OPTIONS,
        className=f"graph {panel.size}",
        responsive=True,
    )
    return html.Div(
        [html.H3(panel.title), html.P(panel.why, className="why"), graph], className="panel"
    )
