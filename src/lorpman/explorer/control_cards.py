"""The cards on which something can be done: the preference, the demand, taking it away."""

import json
from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from lorpman.explorer import sentences
from lorpman.explorer.opened_run import Opened
from lorpman.explorer.queries import FORMATS
from lorpman.front.front import Front


def extra(kind: str = "data", **values: str) -> Any:
    """Attributes of an element that Dash has no names for: ``data-run``, ``aria-hidden``.

    >>> extra(run="digits")
    {'data-run': 'digits'}
    """
    return {f"{kind}-{name}": value for name, value in values.items()}


def card(title: str, *children: Any, name: str, why: str = "") -> Any:
    head: list[Any] = [html.H2(title, id=f"{name}-title")]
    if why:
        head.append(html.P(why, className="why"))
    return html.Section(
        [*head, *children],
        id=f"{name}-card",
        className=f"card {name}",
        **extra("aria", labelledby=f"{name}-title"),
    )


def preference_card(runs: Sequence[Opened]) -> Any:
    tasks = runs[0].front.tasks
    return card(
        "Your preference",
        html.P(id="moving", className="hint"),
        html.Div(
            _weights(tasks),
            id="weights",
            className="weights",
            **extra(tasks=json.dumps(list(tasks))),
        ),
        html.Div(
            [
                html.Label("Point", htmlFor="place"),
                dcc.Input(id="place", type="range", min=0, max=1, step=1, value=0),
                html.Output(id="place-text"),
            ],
            id="places",
            className="weight",
        ),
        html.Div(id="scores", className="scores many" if len(tasks) > 6 else "scores"),
        html.P(
            [
                html.Span(id="status"),
                html.Span(className="spinner", **extra("aria", hidden="true")),
            ],
            className="hint status",
            role="status",
        ),
        name="preference",
        why=sentences.PREFERENCE,
    )


def _weights(tasks: Sequence[str]) -> list[Any]:
    """One slider between two tasks; else one per task, and a triangle to drag in for three."""
    if len(tasks) == 2:
        name = {"type": "weight", "index": 1}
        slider = dcc.Input(id=name, type="range", min=0, max=1, step=0.005, value=0.5)
        ends = [html.Span(task, className=f"end end-{i}") for i, task in enumerate(tasks)]
        label = _label_for(name, f"Weight of {tasks[1]}; the rest goes to {tasks[0]}")
        return [html.Div([label, ends[0], slider, ends[1]], className="between")]
    sliders = [
        html.Div(
            [
                _label_for({"type": "weight", "index": i}, task, "task"),
                dcc.Input(
                    id={"type": "weight", "index": i},
                    type="range",
                    min=0,
                    max=1,
                    step=0.01,
                    value=1 / len(tasks),
                ),
                html.Output("", className="share", **extra(share=str(i))),
            ],
            className="weight",
        )
        for i, task in enumerate(tasks)
    ]
    triangle = [html.Div(id="ternary")] if len(tasks) == 3 else []
    even = html.Button("All the same", id="even", className="small")
    return [*triangle, html.Div(sliders, className="linked"), even]


def _label_for(name: dict[str, Any], text: str, kind: str = "unseen") -> Any:
    """The label of a component; Dash writes such a name into the page as compact, sorted JSON."""
    identity = json.dumps(name, sort_keys=True, separators=(",", ":"))
    return html.Label(text, htmlFor=identity, className=kind, title=text)


def take_card() -> Any:
    buttons = [
        html.Button(
            [html.Strong(f".{suffix}"), html.Span(what)],
            className="take",
            **extra(format=suffix),
        )
        for suffix, what in FORMATS.items()
    ]
    return card(
        "Take it",
        html.Div(buttons, className="takes"),
        html.P(id="taken", className="hint", role="status"),
        html.P("The same in a terminal:", className="label"),
        html.Div(
            [
                html.Code(id="command"),
                html.Button("copy", className="small", **extra(copy="command")),
            ],
            className="command",
        ),
        html.P("This view as a link:", className="label"),
        html.Div(
            [
                html.Code(id="link"),
                html.Button("copy", className="small", **extra(copy="link")),
            ],
            className="command",
        ),
        name="take",
        why="A file that runs without lorpman, zipped with a card that says what it is: settings, "
        "preference, scores, checksum.",
    )


def demand_card(front: Front) -> Any:
    fields = []
    for i, task in enumerate(front.tasks):
        column = front.scores[:, i]
        example = column.quantile(0.5).item()
        fields.append(
            html.Div(
                [
                    _label_for({"type": "bound", "index": i}, task, "task"),
                    html.Small(front.direction(task).bound.replace("_", " ")),
                    dcc.Input(
                        id={"type": "bound", "index": i},
                        type="number",
                        step="any",
                        debounce=False,
                        placeholder=f"e.g. {example:.3g}",
                    ),
                ],
                className="bound",
            )
        )
    return card(
        "What you need",
        html.Div(fields, className="bounds"),
        html.Button("Find it", id="find", className="main"),
        html.Div(id="answer", role="status", className="answer"),
        name="demand",
        why="Give the scores that some tasks must reach; leave the others empty. The page finds "
        "the preference that keeps to them and does best on the rest, or the nearest possible.",
    )
