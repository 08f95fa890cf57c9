"""The card with real inputs, and what the network at the preference makes of them."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from dash import html

from lorpman.explorer.cards.card_frame import card
from lorpman.explorer.live_run import LiveRun
from lorpman.explorer.opened_run import OpenedRun
from lorpman.explorer.samples import Prediction


def samples_card(run: OpenedRun) -> Any:
    """The frame of the inputs; the first answer fills it.

    Args:
        run: Any run of the page.
    """
    given = run.spec is None
    which = "Samples that you gave" if given else "Held-out inputs that no network saw in training"
    return card(
        "Real inputs",
        html.Div(id="samples", className="samples"),
        name="samples",
        why=f"{which}, and what the network at your preference makes of them. Framed: its answer "
        "differs from that with all weights equal.",
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
        cards.append(
            html.Figure(
                [_input(run, live, place), html.Figcaption(html.Ul(lines))],
                className="flip" if flipped else "",
            )
        )
    return cards


def _input(run: OpenedRun, live: LiveRun, place: int) -> Any:
    """The input on one card: a picture, a row of a table, a text, or nothing."""
    shown = live.samples.inputs[place]
    if shown.picture is not None:
        source = f"pictures/{quote(run.key, safe='')}/{place}"
        return html.Img(src=source, alt=f"input {place + 1}")
    if shown.row:
        cells = [html.Tr([html.Th(name, scope="row"), html.Td(value)]) for name, value in shown.row]
        return html.Div(html.Table(html.Tbody(cells)), className="input")
    return html.Blockquote(shown.text, className="input") if shown.text else None


def no_samples(run: OpenedRun) -> Any:
    """Why there are no inputs of a run that cannot be evaluated.

    Args:
        run: The run.
    """
    return html.P(f"None here: {run.why_not_live}.", className="hint")


def _line(task: str, new: Prediction, old: Prediction) -> Any:
    """One task: its answer, whether that is right, and what it was before."""
    mark = {True: " ✓", False: " ✗", None: ""}[new.right]
    kind = {True: "right", False: "wrong", None: ""}[new.right]
    flipped = new.flipped(old)
    truth = f"{task}; right: {new.truth}" if new.truth else task
    return html.Li(
        [
            html.Span(task, className="task", title=truth),
            html.B(new.text),
            html.Span(mark, className=kind),
            html.Small(_aside(new, old)),
        ],
        className="flipped" if flipped else "",
    )


def _aside(new: Prediction, old: Prediction) -> str:
    """What the network with equal weights said, where that was another class."""
    return f"was {old.text}" if new.flipped(old) else ""
