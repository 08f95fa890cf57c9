"""What stands on the explorer page, before anything moves."""

from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html

from lorpman.explorer import sentences
from lorpman.explorer.cards.demand_card import demand_card
from lorpman.explorer.cards.export_card import export_card
from lorpman.explorer.cards.front_card import front_card, live_curves
from lorpman.explorer.cards.inside_card import inside_card
from lorpman.explorer.cards.preference_card import preference_card
from lorpman.explorer.cards.samples_card import samples_card
from lorpman.explorer.figures.front_figure import front_figure
from lorpman.explorer.figures.style import score_limits
from lorpman.explorer.figures.surfaces import draw_projections
from lorpman.explorer.live_run import LiveRun
from lorpman.explorer.opened_run import OpenedRun


def page_layout(runs: Sequence[OpenedRun], live_runs: Mapping[str, LiveRun]) -> Any:
    """The whole page; the same for every window.

    Args:
        runs: The runs on it, of the same tasks.
        live_runs: Those of them that can be evaluated, by key.
    """
    front = runs[0].front
    return html.Div(
        [
            _stores(runs, live_runs),
            html.A("Skip to your preference", href="#preference-card", className="skip"),
            _header(runs[0]),
            html.P(id="notice", className="notice", role="status"),
            html.Main(
                [
                    html.Div([front_card(runs, live_runs), demand_card(front)], className="column"),
                    html.Div([preference_card(runs), export_card()], className="column side"),
                    samples_card(runs[0]),
                    inside_card(runs),
                ]
            ),
            html.Footer(_footer(runs, live_runs)),
        ],
        className="page",
    )


def _header(run: OpenedRun) -> Any:
    return html.Header(
        [
            html.P("lorpman explorer", className="brand"),
            html.H1("How much should each task matter?"),
            html.P(
                "One training run learned many networks at once. Say how much each task "
                "matters, see what that gains and costs, and take away the network you "
                "want.",
                className="lead",
            ),
            html.P([html.B(run.origin.problem), _after_colon(run)], className="problem"),
        ]
    )


def _after_colon(run: OpenedRun) -> str:
    """The problem in words, if somebody has said it."""
    return f": {run.origin.summary}" if run.origin.summary else ""


def _stores(runs: Sequence[OpenedRun], live_runs: Mapping[str, LiveRun]) -> Any:
    """What the page's script reads and writes; see ``assets/explorer.js``."""
    worst, best = score_limits([run.front for run in runs])
    facts = [
        {
            "key": run.key,
            "title": run.title,
            "mode": run.mode,
            "moving": sentences.explain_choice(run),
            "alphas": run.front.alphas.tolist(),
            "scores": run.front.scores.tolist(),
        }
        for run in runs
    ]
    ends = {"tasks": list(runs[0].front.tasks), "worst": worst, "best": best}
    projections = draw_projections(runs) if len(runs[0].front.tasks) == 3 else None
    # Empty until somebody moves, asks or is answered.
    names = ("preference", "picked", "asked", "now", "found", "brush", "look", "address")
    return html.Div(
        [
            *(dcc.Store(id=name) for name in names),
            dcc.Store(id="runs", data=facts),
            dcc.Store(id="ends", data=ends),
            dcc.Store(id="drawn", data=front_figure(runs)),
            dcc.Store(id="drawn-flat", data=projections),
            dcc.Store(id="curves", data=live_curves(runs, live_runs)),
        ]
    )


def _footer(runs: Sequence[OpenedRun], live_runs: Mapping[str, LiveRun]) -> Any:
    """On which data scores are."""
    live = next(iter(live_runs.values()), None)
    held = f" The moving point: {live.held_text}." if live is not None else ""
    note = next((run.splits.note for run in runs if run.splits is not None), "")
    return html.P(
        [f"Fronts: scores on all {runs[0].data_words}.{held} ", f"Data: {note}. " if note else ""]
    )
