"""The card of the report with real inputs, and what networks at the ends of the front say."""

import base64
import html

import torch

from lorpman.explorer.live_run import held_samples
from lorpman.explorer.opened_run import OpenedRun
from lorpman.explorer.samples import Prediction, choose_samples
from lorpman.explorer.shown_input import ShownInput

_CANDIDATES = 200
# With more tasks, a column for each corner fits no card.
_MOST_CORNERS = 4


def samples_section(run: OpenedRun) -> str:
    """Inputs as the problem shows them, with predictions at equal weights and at every corner.

    Args:
        run: Any run; one without weights or data has no such card.

    Returns:
        A section of the report, or nothing.
    """
    if run.model is None or run.splits is None:
        return ""
    batch = held_samples(run.splits.test, run.tasks, _CANDIDATES)[0]
    samples = choose_samples(run.model, run.tasks, batch, run.show)
    columns = {"equal weights": samples.balanced}
    if len(run.tasks) <= _MOST_CORNERS:
        for corner, task in zip(torch.eye(len(run.tasks)), run.tasks, strict=True):
            columns[f"all on {task.name}"] = samples.predict(run.model.solution(corner).eval())
    figures = [
        _figure(run, shown, {name: cards[place] for name, cards in columns.items()})
        for place, shown in enumerate(samples.inputs)
    ]
    why = (
        "Inputs on which the preference matters first, and what networks of this run say about "
        "them. Bold: it differs from the answer with equal weights."
    )
    return (
        '<section class="card wide samples"><h2>Real inputs</h2>'
        f'<p class="why">{why}</p><div class="samples wide">{"".join(figures)}</div></section>'
    )


def _figure(run: OpenedRun, shown: ShownInput, said: dict[str, list[Prediction]]) -> str:
    """One input above a small table: a row per task, a column per network."""
    even = next(iter(said.values()))
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in ["", *said])
    rows = []
    for line, task in enumerate(even):
        cells = [_cell(predictions[line], task) for predictions in said.values()]
        name = html.escape(run.tasks[task.task].name)
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<figure>{_input(shown)}<figcaption>{table}</figcaption></figure>"


def _cell(prediction: Prediction, even: Prediction) -> str:
    mark = {True: ' <span class="right">✓</span>', False: ' <span class="wrong">✗</span>'}
    text = html.escape(prediction.text)
    text = f"<b>{text}</b>" if prediction.flipped(even) else text
    return (
        f"<td>{text}{mark.get(prediction.right, '') if prediction.right is not None else ''}</td>"
    )


def _input(shown: ShownInput) -> str:
    if shown.picture is not None:
        data = base64.b64encode(shown.picture).decode()
        return f'<img alt="an input" src="data:image/png;base64,{data}">'
    if shown.row:
        cells = "".join(
            f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>'
            for name, value in shown.row
        )
        return f'<div class="input"><table><tbody>{cells}</tbody></table></div>'
    return f'<blockquote class="input">{html.escape(shown.text)}</blockquote>' if shown.text else ""
