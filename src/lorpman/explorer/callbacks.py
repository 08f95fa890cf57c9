"""What the page asks of this process, and what its own script does."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html, no_update
from flask import Flask, Response, request

from lorpman.errors import UsageError
from lorpman.explorer import score_cards, sentences
from lorpman.explorer.bounds import read_bounds
from lorpman.explorer.live_evaluation import Live, rounded
from lorpman.explorer.opened_run import Opened
from lorpman.explorer.queries import Answers
from lorpman.explorer.request_guard import Refused


def connect(app: Dash, answers: Answers) -> None:
    """Tie the page to what it can ask for."""
    _connect_script(app)
    _connect_point(app, answers)
    _connect_demand(app, answers)
    _connect_files(app, answers)


def _connect_point(app: Dash, answers: Answers) -> None:
    @app.callback(
        Output("now", "data"),
        Output("scores", "children"),
        Output("samples", "children"),
        Output("status", "children"),
        Output("command", "children"),
        Input("asked", "data"),
        prevent_initial_call=True,
    )
    def point(asked: Any) -> Any:
        if not isinstance(asked, dict):
            raise Refused("a question names a run and a preference")
        run = answers.run(asked.get("run"))
        alpha = answers.alpha(run, asked.get("alpha"))
        found = answers.point(run, alpha)
        predictions = found.pop("predictions", None)
        live = answers.lives.get(run.key)
        inputs = (
            score_cards.sample_cards(run, live, predictions)
            if live is not None
            else html.P(f"None here: {run.still}.", className="hint")
        )
        # What was asked comes back, so that the page can tell which question this answers.
        found["serial"] = asked.get("serial") if type(asked.get("serial")) is int else 0
        return (
            found,
            score_cards.score_tiles(run, found["scores"]),
            inputs,
            status(run, live, found),
            command(run, alpha),
        )


def status(run: Opened, live: Live | None, found: Mapping[str, Any]) -> str:
    """Where the scores come from."""
    if live is None:
        return f"Point {found['place'] + 1} of {len(run.front)}, scored on the whole test split."
    milliseconds = found["milliseconds"]
    took = f"{milliseconds:.0f} ms" if milliseconds >= 1 else "less than 1 ms"
    return f"Scored just now on {live.held_text}, in {took}."


def command(run: Opened, alpha: Sequence[float]) -> str:
    """How to export the same network in a terminal."""
    parts = ["lorpman", "export", str(run.path), "--alpha", sentences.alpha_text(alpha)]
    return shlex.join([*parts, "--to", "model.onnx"])


def _connect_demand(app: Dash, answers: Answers) -> None:
    @app.callback(
        Output("found", "data"),
        Output("answer", "children"),
        Input("find", "n_clicks"),
        State({"type": "bound", "index": ALL}, "value"),
        State("run", "value"),
        prevent_initial_call=True,
        running=[(Output("find", "disabled"), True, False)],
    )
    def find(clicks: Any, given: Any, key: Any) -> Any:
        if not clicks:
            return no_update, no_update
        run = answers.run(key)
        bounds = read_bounds(run.front, given)
        if isinstance(bounds, str):
            return no_update, html.P(bounds, className="warning")
        try:
            choice = answers.find(run, bounds)
        except UsageError as error:
            raise Refused(str(error)) from None
        alpha = rounded(choice.alpha)
        found = {"run": run.key, "alpha": alpha, "click": int(clicks)}
        return found, score_cards.answer(run, answers.lives.get(run.key), bounds, choice)


def _connect_files(app: Dash, answers: Answers) -> None:
    server: Flask = app.server

    @server.get("/export")
    def export() -> Response:
        run = answers.run(request.args.get("run"))
        try:
            given = [float(part) for part in request.args.get("alpha", "").split(",")]
        except ValueError:
            raise Refused("a preference is numbers with commas") from None
        alpha = answers.alpha(run, given)
        suffix = request.args.get("format", "")
        try:
            content = answers.export(run, alpha, suffix)
        except UsageError as error:
            raise Refused(str(error), 409) from None
        name = f"{run.spec.problem.name}-{run.spec.method.name}-{suffix}.zip"
        disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, mimetype="application/zip", headers=disposition)

    @server.get("/pictures/<key>/<int:card>")
    def sample(key: str, card: int) -> Response:
        live = answers.lives.get(answers.run(key).key)
        if live is None or card >= len(live.samples.shown):
            raise Refused("not found", 404)
        content = live.samples.pictures[card]
        if content is None:
            raise Refused("not found", 404)
        return Response(content, mimetype="image/png", headers={"Cache-Control": "max-age=3600"})


def _connect_script(app: Dash) -> None:
    """What the browser does by itself; see ``assets/explorer.js``."""
    weights = {"type": "weight", "index": ALL}
    app.clientside_callback(
        ClientsideFunction("lorpman", "prefer"),
        Output("preference", "data"),
        Output(weights, "value"),
        Output("place", "value"),
        Output("run", "value"),
        Output("front", "clickData"),
        Output("flat", "clickData"),
        Input(weights, "value"),
        Input("place", "value"),
        Input("run", "value"),
        Input("front", "clickData"),
        Input("flat", "clickData"),
        Input("picked", "data"),
        Input("found", "data"),
        State("runs", "data"),
        State("preference", "data"),
    )
    app.clientside_callback(
        ClientsideFunction("lorpman", "follow"),
        Output("address", "data"),
        Output("link", "children"),
        Output("moving", "children"),
        Output("where", "children"),
        Input("preference", "data"),
        Input("now", "data"),
        Input("shown", "value"),
        Input({"type": "bound", "index": ALL}, "value"),
        State("runs", "data"),
        State("ends", "data"),
    )
    app.clientside_callback(
        ClientsideFunction("lorpman", "draw"),
        Output("front", "figure"),
        Output("flat", "figure"),
        Input("drawn", "data"),
        Input("drawn-flat", "data"),
        Input("now", "data"),
        Input("shown", "value"),
        Input("curves", "data"),
        Input("brush", "data"),
        Input("look", "data"),
        State("ends", "data"),
    )
    inside = {"type": "inside", "index": ALL}
    app.clientside_callback(
        ClientsideFunction("lorpman", "dress"),
        Output(inside, "figure"),
        Input("look", "data"),
        State(inside, "figure"),
    )
