"""What the page asks of this process: the scores at a preference, or the preference for scores."""

from collections.abc import Mapping
from typing import Any

from dash import ALL, Dash, Input, Output, State, html, no_update

from lorpman.errors import NotFinite, UsageError
from lorpman.explorer.bounds import read_bounds
from lorpman.explorer.cards.demand_card import search_result
from lorpman.explorer.cards.export_card import export_command
from lorpman.explorer.cards.preference_card import score_tiles
from lorpman.explorer.cards.samples_card import no_samples, sample_figures
from lorpman.explorer.live_run import round_preference
from lorpman.explorer.opened_run import OpenedRun
from lorpman.explorer.queries import LiveScores, Queries, StoredScores
from lorpman.explorer.request_guard import RequestRefused


def register_callbacks(app: Dash, queries: Queries) -> None:
    """Tie the page to what it can ask for.

    Args:
        app: The Dash application.
        queries: What answers.
    """
    _register_point(app, queries)
    _register_search(app, queries)


def _register_point(app: Dash, queries: Queries) -> None:
    """A preference in; its scores, predictions and command out."""

    @app.callback(
        Output("now", "data"),
        Output("scores", "children"),
        Output("samples", "children"),
        Output("status", "children"),
        Output("command", "children"),
        Input("asked", "data"),
        prevent_initial_call=True,
    )
    def answer_point(asked: Any) -> Any:
        if not isinstance(asked, dict):
            raise RequestRefused("a question names a run and a preference")
        run = queries.run_named(asked.get("run"))
        alpha = queries.read_alpha(run, asked.get("alpha"))
        try:
            answer = queries.scores_at(run, alpha)
        except NotFinite as error:
            raise RequestRefused(str(error), 409) from None
        return (
            _now(run, alpha, answer, asked),
            score_tiles(run, answer.scores, queries.even_scores(run)),
            _samples(run, queries, answer),
            _status(run, queries, answer),
            export_command(run, alpha),
        )


def _now(
    run: OpenedRun,
    alpha: tuple[float, ...],
    answer: StoredScores | LiveScores,
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    """What the page's script needs to draw the moving point."""
    serial = asked.get("serial")
    return {
        "run": run.key,
        "alpha": alpha,
        "scores": answer.scores,
        # What was asked comes back, so that the page can tell which question this answers.
        "serial": serial if type(serial) is int else 0,
    }


def _samples(run: OpenedRun, queries: Queries, answer: StoredScores | LiveScores) -> Any:
    """The inputs with their predictions, or why there are none."""
    if isinstance(answer, StoredScores):
        return no_samples(run)
    return sample_figures(run, queries.live_runs[run.key], answer.predictions)


def _status(run: OpenedRun, queries: Queries, answer: StoredScores | LiveScores) -> str:
    """Where the scores come from."""
    if isinstance(answer, StoredScores):
        return f"Point {answer.place + 1} of {len(run.front)}, scored on all {run.data_words}."
    milliseconds = answer.milliseconds
    took = f"{milliseconds:.0f} ms" if milliseconds >= 1 else "less than 1 ms"
    return f"Scored just now on {queries.live_runs[run.key].held_text}, in {took}."


def _register_search(app: Dash, queries: Queries) -> None:
    """Bounds in; a preference and what it reaches out."""

    @app.callback(
        Output("found", "data"),
        Output("answer", "children"),
        Input("find", "n_clicks"),
        State({"type": "bound", "index": ALL}, "value"),
        State("run", "value"),
        prevent_initial_call=True,
        running=[(Output("find", "disabled"), True, False)],
    )
    def answer_search(clicks: Any, given: Any, key: Any) -> Any:
        if clicks is None or clicks == 0:
            return no_update, no_update
        if type(clicks) is not int:
            raise RequestRefused("a count of clicks is a whole number")
        run = queries.run_named(key)
        bounds = read_bounds(run.front, given)
        if isinstance(bounds, str):
            return no_update, html.P(bounds, className="warning")
        try:
            choice = queries.find(run, bounds)
        except UsageError as error:
            raise RequestRefused(str(error)) from None
        alpha = round_preference(choice.alpha)
        # The count of clicks makes every answer a new one, also where the same was found again.
        result = {"run": run.key, "alpha": alpha, "click": clicks}
        return result, search_result(run, queries.live_runs.get(run.key), bounds, choice)
