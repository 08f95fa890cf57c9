"""The card on which scores are asked for, with what a search for them gave."""

from collections.abc import Mapping
from typing import Any

from dash import dcc, html

from lorpman.explorer.bounds import select_command
from lorpman.explorer.cards.card_frame import card, command_with_copy, label_for
from lorpman.explorer.live_run import LiveRun
from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.choice import Choice
from lorpman.front.front import Front
from lorpman.front.plot_style import significant


def demand_card(front: Front) -> Any:
    """A field per task, and the button that searches.

    Args:
        front: The front of the first run: its tasks, and scores as examples.
    """
    fields = []
    for i, task in enumerate(front.tasks):
        name = {"type": "bound", "index": i}
        example = front.scores[:, i].quantile(0.5).item()
        fields.append(
            html.Div(
                [
                    label_for(name, task, "task"),
                    html.Small(front.direction(task).bound.replace("_", " ")),
                    dcc.Input(
                        id=name,
                        type="number",
                        step="any",
                        # Every key counts, since the link to this view holds what was typed.
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


def search_result(
    run: OpenedRun, live: LiveRun | None, bounds: Mapping[str, float], choice: Choice
) -> list[Any]:
    """What was found, against what was asked.

    Args:
        run: The run that was searched.
        live: The same run where it can be evaluated; None where stored points were searched.
        bounds: What was asked, by task.
        choice: What was found.
    """
    rows = []
    for task, bound in bounds.items():
        score, direction = choice.scores[task], run.front.direction(task)
        kept = direction.reaches(score, bound)
        rows.append(
            html.Li(
                [
                    html.Span("✓ " if kept else "✗ ", className="right" if kept else "wrong"),
                    f"{task} {significant(score, 4)} (asked: {direction.symbol} {bound:g})",
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
        command_with_copy("select-command", select_command(run, bounds)),
    ]
