"""The parts of the page that a new preference changes."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dash import html

from lorpman.explorer.bounds import select_command
from lorpman.explorer.control_cards import extra
from lorpman.explorer.live_evaluation import Live
from lorpman.explorer.opened_run import Opened
from lorpman.explorer.samples import Prediction
from lorpman.front.choice import Choice
from lorpman.front.front import worst_and_best
from lorpman.front.plot_style import significant


def score_tiles(run: Opened, scores: Sequence[float]) -> list[Any]:
    """Each task's score, and where it stands between the worst and the best of the front."""
    front, tiles = run.front, []
    worst, best = (end.tolist() for end in worst_and_best([front]))
    for i, (task, score) in enumerate(zip(front.tasks, scores, strict=True)):
        low, high = worst[i], best[i]
        part = (score - low) / (high - low) if high != low else 1.0
        part = min(max(part, 0.0), 1.0)
        bar = html.Span(className="bar", style={"--part": f"{part:.3f}"})
        tiles.append(
            html.Div(
                [
                    html.Span(task, className="task", title=task),
                    html.B(significant(score, 4), **extra(score=task)),
                    bar,
                    html.Small(front.direction(task).words),
                ],
                className="tile",
            )
        )
    return tiles


def sample_cards(run: Opened, live: Live, predictions: Sequence[Sequence[Prediction]]) -> list[Any]:
    """Each input, with what the network says, and what the balanced one said if that differs."""
    cards = []
    for card, (now, balanced) in enumerate(zip(predictions, live.samples.balanced, strict=True)):
        lines = [
            _line(run.front.tasks[new.task], new, old)
            for new, old in zip(now, balanced, strict=True)
        ]
        flipped = any(new.flipped(old) for new, old in zip(now, balanced, strict=True))
        image = html.Img(src=f"pictures/{quote(run.key, safe='')}/{card}", alt=f"input {card + 1}")
        cards.append(
            html.Figure(
                [image if live.samples.pictures[card] else None, html.Figcaption(html.Ul(lines))],
                className="flip" if flipped else "",
            )
        )
    return cards


def _line(task: str, new: Prediction, old: Prediction) -> Any:
    mark = {True: " ✓", False: " ✗", None: ""}[new.right]
    kind = {True: "right", False: "wrong", None: ""}[new.right]
    flipped = new.flipped(old)
    return html.Li(
        [
            html.Span(task, className="task", title=task),
            html.B(new.text),
            html.Span(mark, className=kind),
            html.Small(f"was {old.text}" if flipped else ""),
        ],
        className="flipped" if flipped else "",
    )


def answer(run: Opened, live: Live | None, bounds: Mapping[str, float], choice: Choice) -> Any:
    """What was found, against what was asked."""
    rows = []
    for task, bound in bounds.items():
        direction = run.front.direction(task)
        kept = direction.reaches(choice.scores[task], bound)
        rows.append(
            html.Li(
                [
                    html.Span("✓ " if kept else "✗ ", className="right" if kept else "wrong"),
                    f"{task} {significant(choice.scores[task], 4)} "
                    f"(asked: {direction.symbol} {bound:g})",
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
                html.Button("copy", className="small", **extra(copy="select-command")),
            ],
            className="command",
        ),
    ]
