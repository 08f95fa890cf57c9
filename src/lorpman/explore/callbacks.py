"""What the page asks of this process: a point, a search, a picture, a file.

Nothing here remembers who asked; what comes from a browser is checked before it is used.
"""

import io
import math
import shlex
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, html, no_update
from flask import Response, request

from lorpman.errors import UsageError
from lorpman.explore import page, words
from lorpman.explore.guard import Refused
from lorpman.explore.live import Live, Turns, rounded
from lorpman.explore.opened import Opened
from lorpman.explore.samples import picture
from lorpman.front import Choice, Front
from lorpman.plot import figures as digits
from lorpman.preference import as_preference
from lorpman.take import take

_LONGEST_NUMBER = 1e12


class Answers:
    """The opened runs, and threads that evaluate them. Shared by all windows, changed by none."""

    def __init__(self, runs: Sequence[Opened], lives: Mapping[str, Live]) -> None:
        self.runs = {run.key: run for run in runs}
        self.lives = dict(lives)
        self._quick, self._slow = Turns(64), Turns(8)

    def run(self, key: Any) -> Opened:
        if not isinstance(key, str) or key not in self.runs:
            raise Refused("unknown run")
        return self.runs[key]

    def alpha(self, run: Opened, given: Any) -> tuple[float, ...]:
        """A preference out of a request: numbers, one per task, with sum 1."""
        m = len(run.front.tasks)
        numbers = isinstance(given, list) and all(type(w) in (int, float) for w in given)
        if not numbers or len(given) != m:
            raise Refused(f"a preference is {m} numbers")
        try:
            alpha = as_preference([float(weight) for weight in given], m)
        except (ValueError, OverflowError) as error:
            raise Refused(str(error)) from None
        if run.mode != "any":
            nearest = (run.front.alphas - alpha).square().sum(1).argmin()
            alpha = run.front.alphas[nearest]
        return rounded(alpha)

    def point(self, run: Opened, alpha: tuple[float, ...]) -> dict[str, Any]:
        """The scores at a preference, and what the page needs to show them."""
        started = time.perf_counter()
        live = self.lives.get(run.key)
        if live is None:
            place = _nearest(run.front, alpha)
            scores = run.front.scores[place].tolist()
            return {"run": run.key, "alpha": alpha, "scores": scores, "place": place}
        point = self._quick.run(lambda: live.point(alpha))
        milliseconds = 1000 * (time.perf_counter() - started)
        return {
            "run": run.key,
            "alpha": alpha,
            "scores": point.scores,
            "predictions": point.predictions,
            "milliseconds": milliseconds,
        }

    def find(self, run: Opened, bounds: Mapping[str, float]) -> Choice:
        demand = demand_of(run.front, bounds)
        live = self.lives.get(run.key)
        if live is None:
            return run.front.select(**demand)
        return self._slow.run(lambda: live.find(demand))

    def export(self, run: Opened, alpha: tuple[float, ...], suffix: str) -> bytes:
        """A zip with the network's file and its card."""
        if f".{suffix}" not in page.FORMATS:
            raise Refused("unknown format")
        if run.model is None or run.splits is None:
            raise Refused(f"nothing to export: {run.still}", 409)
        return self._slow.run(lambda: _zipped(run, alpha, suffix))

    def close(self) -> None:
        self._quick.close()
        self._slow.close()


def demand_of(front: Front, bounds: Mapping[str, float]) -> dict[str, Any]:
    """Keep to ``bounds``, and be best on the tasks without one (on all, if every task has one).

    Several tasks count by their score in units of its range on the front.
    """
    up = dict(zip(front.tasks, front.maximise, strict=True))
    rest = [task for task in front.tasks if task not in bounds] or list(front.tasks)
    demand: dict[str, Any] = {
        "at_least": {task: bound for task, bound in bounds.items() if up[task]},
        "at_most": {task: bound for task, bound in bounds.items() if not up[task]},
    }
    if len(rest) == 1:
        return demand | {"best": rest[0]}
    weights = {task: weight for task, weight in utility_of(front).items() if task in rest}
    signed = {task: weight if up[task] else -weight for task, weight in weights.items()}
    return demand | {"utility": lambda scores: sum(w * scores[t] for t, w in signed.items())}


def utility_of(front: Front) -> dict[str, float]:
    """One over each task's range on the front: what a unit of its score is worth."""
    width = front.scores.amax(0) - front.scores.amin(0)
    return {
        task: float(f"{1 / w:.4g}") if w > 0 else 1.0
        for task, w in zip(front.tasks, width.tolist(), strict=True)
    }


def select_command(run: Opened, bounds: Mapping[str, float]) -> str:
    """The same demand on the command line."""
    front = run.front
    up = dict(zip(front.tasks, front.maximise, strict=True))
    parts = ["lorpman", "select", str(run.path)]
    for task, bound in bounds.items():
        parts += ["--at-least" if up[task] else "--at-most", f"{task}={bound:g}"]
    rest = [task for task in front.tasks if task not in bounds] or list(front.tasks)
    if len(rest) == 1:
        parts += ["--best", rest[0]]
    else:
        weights = utility_of(front)
        parts += [part for task in rest for part in ("--utility", f"{task}={weights[task]:g}")]
    return shlex.join(parts)


def _nearest(front: Front, alpha: Sequence[float]) -> int:
    target = front.alphas.new_tensor(list(alpha))
    return int((front.alphas - target).square().sum(1).argmin())


def _zipped(run: Opened, alpha: tuple[float, ...], suffix: str) -> bytes:
    assert run.model is not None
    assert run.splits is not None
    weights = as_preference(list(alpha), len(alpha))
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / f"model.{suffix}"
        written = take(run.spec, run.model, run.splits, weights, to).file
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(written.path, written.path.name)
            archive.write(written.card, written.card.name)
    return content.getvalue()


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
        cards = (
            page.sample_cards(run, live, predictions)
            if live is not None
            else html.P(f"None here: {run.still}.", className="hint")
        )
        # What was asked comes back, so that the page can tell which question this answers.
        found["serial"] = asked.get("serial") if type(asked.get("serial")) is int else 0
        return (
            found,
            score_tiles(run, found["scores"]),
            cards,
            status(run, live, found),
            command(run, alpha),
        )


def score_tiles(run: Opened, scores: Sequence[float]) -> list[Any]:
    """Each task's score, and where it stands between the worst and the best of the front."""
    front, tiles = run.front, []
    for i, (task, score) in enumerate(zip(front.tasks, scores, strict=True)):
        column = front.scores[:, i]
        low, high = column.min().item(), column.max().item()
        part = (score - low) / (high - low) if high > low else 1.0
        part = min(max(part if front.maximise[i] else 1 - part, 0.0), 1.0)
        bar = html.Span(className="bar", style={"--part": f"{part:.3f}"})
        better = "higher is better" if front.maximise[i] else "lower is better"
        tiles.append(
            html.Div(
                [
                    html.Span(task, className="task", title=task),
                    html.B(digits(score, 4), **{"data-score": task}),
                    bar,
                    html.Small(better),
                ],
                className="tile",
            )
        )
    return tiles


def status(run: Opened, live: Live | None, found: Mapping[str, Any]) -> str:
    """Where the scores come from."""
    if live is None:
        return f"Point {found['place'] + 1} of {len(run.front)}, scored on the whole test split."
    return (
        f"Scored just now on {live.held_samples:,} held-out test samples, "
        f"in {found['milliseconds']:.0f} ms."
    )


def command(run: Opened, alpha: Sequence[float]) -> str:
    """How to export the same network in a terminal."""
    parts = ["lorpman", "export", str(run.path), "--alpha", words.alpha_text(alpha)]
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
        return found, _found(run, answers.lives.get(run.key), bounds, choice)


def read_bounds(front: Front, given: Any) -> dict[str, float] | str:
    """The bounds that were filled in, or what is wrong with them in words."""
    if not isinstance(given, list) or len(given) != len(front.tasks):
        raise Refused(f"bounds are {len(front.tasks)} numbers, or nothing")
    bounds = {}
    for task, value in zip(front.tasks, given, strict=True):
        if value is None or value == "":
            continue
        if type(value) not in (int, float) or not math.isfinite(value):
            raise Refused("a bound is a number")
        if abs(value) > _LONGEST_NUMBER:
            raise Refused("a bound is a number of reasonable size")
        bounds[task] = float(value)
    return bounds or "Fill in what at least one task must reach."


def _found(run: Opened, live: Live | None, bounds: Mapping[str, float], choice: Choice) -> Any:
    """What was found, against what was asked."""
    up = dict(zip(run.front.tasks, run.front.maximise, strict=True))
    rows = []
    for task, bound in bounds.items():
        kept = choice.scores[task] >= bound if up[task] else choice.scores[task] <= bound
        sign = "≥" if up[task] else "≤"
        rows.append(
            html.Li(
                [
                    html.Span("✓ " if kept else "✗ ", className="right" if kept else "wrong"),
                    f"{task} {digits(choice.scores[task], 4)} (asked: {sign} {bound:g})",
                ]
            )
        )
    head = "Found." if choice.feasible else "Nothing reaches all of that; this is the nearest."
    data = (
        f"among the {len(run.front)} stored points, on test data"
        if live is None
        else f"on {live.searched_samples:,} validation samples; the scores above are on test data"
    )
    return [
        html.P(
            [html.B(head), f" The preference was moved there. Searched {data}."],
            className="" if choice.feasible else "warning",
        ),
        html.Ul(rows),
        html.Div(
            [
                html.Code(select_command(run, bounds), id="select-command"),
                html.Button("copy", className="small", **{"data-copy": "select-command"}),
            ],
            className="command",
        ),
    ]


def _connect_files(app: Dash, answers: Answers) -> None:
    server = app.server

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
        content = picture(live.samples.input(card))
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
        Input("front", "selectedData"),
        Input("scheme", "data"),
        State("ends", "data"),
    )
    inside = {"type": "inside", "index": ALL}
    app.clientside_callback(
        ClientsideFunction("lorpman", "dress"),
        Output(inside, "figure"),
        Input("scheme", "data"),
        State(inside, "figure"),
    )
