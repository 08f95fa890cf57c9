"""The card with real inputs, and what the network at the preference makes of them."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from dash import html

from lorpman.explorer.cards.card_frame import card
from lorpman.explorer.live_run import LiveRun
from lorpman.explorer.opened_run import OpenedRun
from lorpman.explorer.samples import Prediction


def samples_card() -> Any:
    """The frame of the inputs; the first answer fills it."""
    return card(
        "Real inputs",
        html.Div(id="samples", className="samples"),
        name="samples",
        why="Held-out inputs that no network saw in training, and what the network at your "
        "preference makes of them. Framed: its answer differs from that with all weights equal.",
    )


def sample_figures(
    run: OpenedRun, live: LiveRun, predictions: Sequence[Sequence[Prediction]]
) -> list[Any]:
    """Each input, with what the network says, and what the balanced one said if that differs.

    Args:
        run: The run.
        live: The same run, with its samples.
        predictions: What the network at the preference says, card by card.
    """
    cards = []
    for place, (now, balanced) in enumerate(zip(predictions, live.samples.balanced, strict=True)):
        pairs = list(zip(now, balanced, strict=True))
        lines = [_line(run.front.tasks[new.task], new, old) for new, old in pairs]
        flipped = any(new.flipped(old) for new, old in pairs)
        source = f"pictures/{quote(run.key, safe='')}/{place}"
        image = html.Img(src=source, alt=f"input {place + 1}")
        cards.append(
            html.Figure(
                [image if live.samples.pictures[place] else None, html.Figcaption(html.Ul(lines))],
                className="flip" if flipped else "",
            )
        )
    return cards


def no_samples(run: OpenedRun) -> Any:
    """Why there are no inputs of a run that cannot be evaluated."""
    return html.P(f"None here: {run.why_not_live}.", className="hint")


def _line(task: str, new: Prediction, old: Prediction) -> Any:
    """One task: its answer, whether that is right, and what it was before."""
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
