"""What stands on the explorer page, before anything moves."""

import json
from collections.abc import Sequence
from typing import Any

import torch
from dash import dcc, html

from lorpman.explore import figures, words
from lorpman.explore.inside import layers
from lorpman.explore.live import Live
from lorpman.explore.opened import Opened
from lorpman.explore.samples import picture
from lorpman.plot import volume_text

FORMATS = {
    ".safetensors": "weights for the network's own class",
    ".onnx": "a graph for ONNX runtimes",
    ".pt2": "a PyTorch program",
}
_GRAPH = {"displaylogo": False, "responsive": True, "displayModeBar": False}
_ZOOMABLE = _GRAPH | {"displayModeBar": "hover", "modeBarButtonsToRemove": ["lasso2d", "toImage"]}


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
                    html.Div([_front_card(runs, lives), _demand_card(front)], className="column"),
                    html.Div([_preference_card(runs), _take_card()], className="column side"),
                    _samples_card(),
                    _inside_card(runs),
                ]
            ),
            html.Footer(_footer(runs, lives)),
        ],
        className="page",
    )


def _stores(runs: Sequence[Opened], lives: dict[str, Live]) -> Any:
    worst, best = figures.limits(runs)
    facts = [
        {
            "key": run.key,
            "title": run.title,
            "mode": run.mode,
            "moving": words.moving(run),
            "alphas": run.front.alphas.tolist(),
            "scores": run.front.scores.tolist(),
        }
        for run in runs
    ]
    ends = {"tasks": list(runs[0].front.tasks), "worst": worst, "best": best}
    names = ("preference", "picked", "asked", "now", "found", "scheme", "address")
    return html.Div(
        [
            *(dcc.Store(id=name) for name in names),
            dcc.Store(id="runs", data=facts),
            dcc.Store(id="ends", data=ends),
            dcc.Store(id="drawn", data=figures.front_figure(runs)),
            dcc.Store(
                id="drawn-flat",
                data=figures.projections(runs) if len(runs[0].front.tasks) == 3 else None,
            ),
            dcc.Store(id="curves", data=_curves(runs, lives)),
        ]
    )


def _curves(runs: Sequence[Opened], lives: dict[str, Live]) -> list[Any]:
    """The lines that points move on, where there are two tasks and evaluating is quick."""
    fronts = {key: live.front for key, live in lives.items() if live.front is not None}
    return [figures.live_curve(run, fronts[run.key]) for run in runs if run.key in fronts]


def _card(title: str, *children: Any, name: str, why: str = "") -> Any:
    head: list[Any] = [html.H2(title, id=f"{name}-title")]
    if why:
        head.append(html.P(why, className="why"))
    return html.Section(
        [*head, *children],
        id=f"{name}-card",
        className=f"card {name}",
        **{"aria-labelledby": f"{name}-title"},
    )


def _front_card(runs: Sequence[Opened], lives: dict[str, Live]) -> Any:
    count = len(runs[0].front.tasks)
    graphs = [
        dcc.Graph(
            id="front",
            config=_ZOOMABLE,
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
        2: "Click a point to move there." + _live_hint(runs, lives),
        3: "Drag to turn, click a point to move there; below, the same along each axis.",
    }.get(
        count,
        "One line per network, one upright axis per task, from its worst score (below) to its "
        "best (above). Click a line to move there; drag over an axis to keep the lines that pass "
        "there, with Shift for further axes, double-click to see all again.",
    )
    return _card(
        "What you can have",
        _legend(runs),
        html.Div(graphs, className="graphs", id="graphs"),
        html.P(hint, className="hint"),
        html.P([html.Span("◆ ", className="you"), html.Span(id="where")], className="hint"),
        _points_table(runs),
        name="front",
        why=words.FRONT,
    )


def _live_hint(runs: Sequence[Opened], lives: dict[str, Live]) -> str:
    """Why the moving point need not lie on the line through the stored ones."""
    live = next(iter(lives.values()), None)
    if live is None or live.whole:
        return ""
    return (
        f" Points: scores on all {live.all_samples:,} test samples. The diamond: on the first "
        f"{live.held_samples:,} of them, so that it can move at once; dotted, the line it moves on."
    )


def _legend(runs: Sequence[Opened]) -> Any:
    """The runs with their colours, to show and hide, and which of them is moved."""
    options = [
        {
            "label": html.Span(
                [
                    html.Span(className="swatch", style={"background": figures.colour(k)}),
                    html.Span(run.title),
                    html.Span(volume_text(run.front), className="volume"),
                ]
            ),
            "value": run.key,
        }
        for k, run in enumerate(runs)
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
                f"{words.VOLUME} The worst acceptable scores here: "
                f"{words.reference(runs[0].front)}.",
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
                **{
                    "data-run": run.key,
                    "data-place": str(place),
                    "data-alpha": json.dumps([round(w, 4) for w in alpha]),
                },
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


def _preference_card(runs: Sequence[Opened]) -> Any:
    tasks = runs[0].front.tasks
    return _card(
        "Your preference",
        html.P(id="moving", className="hint"),
        html.Div(
            _weights(tasks),
            id="weights",
            className="weights",
            **{"data-tasks": json.dumps(list(tasks))},
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
            [html.Span(className="spinner", **{"aria-hidden": "true"}), html.Span(id="status")],
            className="hint status",
            role="status",
        ),
        name="preference",
        why=words.PREFERENCE,
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
                html.Output("", className="share", **{"data-share": str(i)}),
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


def _take_card() -> Any:
    buttons = [
        html.Button(
            [html.Strong(suffix), html.Span(what)],
            className="take",
            **{"data-format": suffix[1:]},
        )
        for suffix, what in FORMATS.items()
    ]
    return _card(
        "Take it",
        html.Div(buttons, className="takes"),
        html.P(id="taken", className="hint", role="status"),
        html.P("The same in a terminal:", className="label"),
        html.Div(
            [
                html.Code(id="command"),
                html.Button("copy", className="small", **{"data-copy": "command"}),
            ],
            className="command",
        ),
        html.P("This view as a link:", className="label"),
        html.Div(
            [
                html.Code(id="link"),
                html.Button("copy", className="small", **{"data-copy": "link"}),
            ],
            className="command",
        ),
        name="take",
        why="A file that runs without lorpman, zipped with a card that says what it is: settings, "
        "preference, scores, checksum.",
    )


def _demand_card(front: Any) -> Any:
    fields = []
    for i, (task, up) in enumerate(zip(front.tasks, front.maximise, strict=True)):
        column = front.scores[:, i]
        example = column.quantile(0.5).item()
        fields.append(
            html.Div(
                [
                    _label_for({"type": "bound", "index": i}, task, "task"),
                    html.Small("at least" if up else "at most"),
                    dcc.Input(
                        id={"type": "bound", "index": i},
                        type="number",
                        step=0.01,
                        debounce=False,
                        placeholder=f"for example {example:.3g}",
                    ),
                ],
                className="bound",
            )
        )
    return _card(
        "What you need",
        html.Div(fields, className="bounds"),
        html.Button("Find it", id="find", className="main"),
        html.Div(id="answer", role="status", className="answer"),
        name="demand",
        why="Give the scores that some tasks must reach; leave the others empty. The page finds "
        "the preference that keeps to them and does best on the rest, or the nearest possible.",
    )


def _samples_card() -> Any:
    return _card(
        "Real inputs",
        html.Div(id="samples", className="samples"),
        name="samples",
        why="Held-out inputs that no network saw in training, and what the network at your "
        "preference makes of them. Framed: its answer differs from that with all weights equal.",
    )


def sample_cards(run: Opened, live: Live, predictions: Any) -> list[Any]:
    """Each input, with what the present network says and what the balanced one says."""
    tasks, cards = run.front.tasks, []
    for card, (now, balanced) in enumerate(zip(predictions, live.samples.balanced, strict=True)):
        lines, flipped = [], False
        for new, old in zip(now, balanced, strict=True):
            moved = new.right is not None and new.text.split()[0] != old.text.split()[0]
            flipped |= moved
            mark = {True: "✓", False: "✗", None: ""}[new.right]
            was = f" was {old.text.split()[0]}" if moved else ""
            lines.append(
                html.Li(
                    [
                        html.Span(tasks[new.task], className="task"),
                        html.B(new.text.split()[0] if new.right is not None else new.text),
                        html.Span(
                            f" {mark}", className={True: "right", False: "wrong"}.get(new.right, "")
                        ),
                        html.Small(was),
                    ],
                    className="flipped" if moved else "",
                )
            )
        image = (
            html.Img(src=f"pictures/{run.key}/{card}", alt=f"input {card + 1}")
            if picture(live.samples.input(card)) is not None
            else None
        )
        cards.append(
            html.Figure(
                [image, html.Figcaption(html.Ul(lines))], className="flip" if flipped else ""
            )
        )
    return cards


def _inside_card(runs: Sequence[Opened]) -> Any:
    parts = []
    for run in runs:
        opened = html.Details([html.Summary(run.title), *_inside(run, runs)], open=run is runs[0])
        parts.append(opened)
    return _card(
        "Inside",
        _parameters(runs),
        *parts,
        name="inside",
        why="How training went, and what the run learned.",
    )


def _figure(name: str, title: str, why: str, figure: Any) -> Any:
    graph = dcc.Graph(
        id={"type": "inside", "index": name},
        figure=figure,
        config=_GRAPH,
        className="graph short",
        responsive=True,
    )
    return html.Div([html.H3(title), html.P(why, className="why"), graph], className="panel")


def _inside(run: Opened, runs: Sequence[Opened]) -> list[Any]:
    panels = []
    if any("losses" in note for note in run.notes):
        panels.append(
            _figure(
                f"{run.key}-losses",
                "Training",
                "How wrong the networks were on average after each pass over the data.",
                figures.losses(run),
            )
        )
    if (volume := figures.volumes(run)) is not None:
        panels.append(
            _figure(
                f"{run.key}-volume",
                "Quality of the front",
                "Hypervolume on validation data after each pass.",
                volume,
            )
        )
    if found := layers(run.model):
        panels += [
            _figure(
                f"{run.key}-correlation",
                "Do the tasks' parts differ?",
                "Correlation of the low-rank matrices, layer by layer: near 0, every task has "
                "directions of its own.",
                figures.correlations(found, run.front.tasks),
            ),
            _figure(
                f"{run.key}-energy",
                "Where do the tasks differ?",
                "Energy: the size of each task's low-rank matrix next to the main weight of its "
                "layer (squared norms).",
                figures.energies(found, run.front.tasks),
            ),
        ]
    elif run.model is None:
        panels.append(html.P(f"Its layers cannot be shown: {run.still}.", className="hint"))
    return [html.Div(panels, className="panels")]


def one_network(run: Opened) -> int:
    """How many parameters one network of the run's problem has; builds none."""
    with torch.device("meta"):
        network = run.spec.problem.network(run.spec.data)
    return sum(parameter.numel() for parameter in network.parameters())


def counts(runs: Sequence[Opened]) -> list[tuple[str, int]]:
    """Parameters of one network, of each run, and of one network per task."""
    one, m = one_network(runs[0]), len(runs[0].front.tasks)
    own = [(run.title, int(run.described.get("parameters", 0))) for run in runs]
    return [("one network", one), *own, ("PaMaL, one per task", m * one)]


def _parameters(runs: Sequence[Opened]) -> Any:
    return _figure(
        "parameters",
        "What it costs to store",
        "Numbers learned by one network for one trade-off, by each run for all of them, and by "
        "PaMaL, which keeps a whole network per task.",
        figures.parameter_counts(counts(runs)),
    )


def _footer(runs: Sequence[Opened], lives: dict[str, Live]) -> Any:
    live = next(iter(lives.values()), None)
    held = f" The moving point: {live.held_samples:,} of them." if live is not None else ""
    note = next((run.splits.note for run in runs if run.splits is not None), "")
    return html.P(
        [f"Fronts: scores on the whole test split.{held} ", f"Data: {note}. " if note else ""]
    )
