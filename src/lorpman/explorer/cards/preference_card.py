"""The card on which the preference is moved, with the scores that it gives."""

import json
from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from lorpman.explorer import sentences
from lorpman.explorer.cards.card_frame import card, extra, label_for
from lorpman.explorer.opened_run import OpenedRun
from lorpman.front.front import Front, worst_and_best
from lorpman.front.plot_style import significant

# Smaller differences are not shown by four digits.
_SAME = 5e-5


def preference_card(runs: Sequence[OpenedRun]) -> Any:
    """Sliders, or a row of points, above the scores. The page's script shows what fits the run.

    Args:
        runs: The runs on the page.
    """
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
        return [_slider_between(tasks)]
    sliders = [_slider_of(i, task, 1 / len(tasks)) for i, task in enumerate(tasks)]
    triangle = [html.Div(id="ternary")] if len(tasks) == 3 else []
    even = html.Button("All the same", id="even", className="small")
    return [*triangle, html.Div(sliders, className="linked"), even]


def _slider_between(tasks: Sequence[str]) -> Any:
    """The weight of the second of two tasks; the rest goes to the first."""
    name = {"type": "weight", "index": 1}
    slider = dcc.Input(id=name, type="range", min=0, max=1, step=0.005, value=0.5)
    left, right = (html.Span(task, className=f"end end-{i}") for i, task in enumerate(tasks))
    label = label_for(name, f"Weight of {tasks[1]}; the rest goes to {tasks[0]}")
    return html.Div([label, left, slider, right], className="between")


def _slider_of(place: int, task: str, weight: float) -> Any:
    """The weight of one of several tasks."""
    name = {"type": "weight", "index": place}
    return html.Div(
        [
            label_for(name, task, "task"),
            dcc.Input(id=name, type="range", min=0, max=1, step=0.01, value=weight),
            html.Output("", className="share", **extra(share=str(place))),
        ],
        className="weight",
    )


def score_tiles(run: OpenedRun, scores: Sequence[float], even: Sequence[float]) -> list[Any]:
    """Each task's score, where it stands on the front, and how it differs from equal weights.

    Args:
        run: The run.
        scores: At the preference, one per task.
        even: With equal weights.
    """
    front, tiles = run.front, []
    worst, best = (end.tolist() for end in worst_and_best([front]))
    for i, (task, score) in enumerate(zip(front.tasks, scores, strict=True)):
        part, tick = (_part(value, worst[i], best[i]) for value in (score, even[i]))
        bar = html.Span(className="bar", style={"--part": f"{part:.3f}", "--even": f"{tick:.3f}"})
        words, kind = _change(front, task, score, even[i])
        tiles.append(
            html.Div(
                [
                    html.Span(task, className="task", title=task),
                    html.B(significant(score, 4), **extra(score=task)),
                    bar,
                    html.Small(front.direction(task).words),
                    html.Span(words, className=f"change {kind}", title="against equal weights"),
                ],
                className="tile",
            )
        )
    changes = html.P(_changes(front, scores, even), className="changes")
    return [html.Div(tiles, className="tiles"), changes]


def _part(score: float, worst: float, best: float) -> float:
    """Where a score stands between the worst (0) and the best (1) of the front."""
    part = (score - worst) / (best - worst) if best != worst else 1.0
    # A point on few samples may lie beyond the front on all of them. Never -0.0.
    return min(max(0.0, part), 1.0)


def _change(front: Front, task: str, score: float, even: float) -> tuple[str, str]:
    """How a score differs from that with equal weights, in words, and the class of the words."""
    gain = front.direction(task).orient(score - even)
    if abs(gain) < _SAME:
        return "=", "same"
    sign = "▲" if gain > 0 else "▼"
    return f"{sign} {score - even:+.2g}", "right" if gain > 0 else "wrong"


def _changes(front: Front, scores: Sequence[float], even: Sequence[float]) -> str:
    """How many tasks gain and lose against equal weights, and which one most."""
    gains = {
        task: front.direction(task).orient(score - before)
        for task, score, before in zip(front.tasks, scores, even, strict=True)
    }
    better = [task for task, gain in gains.items() if gain >= _SAME]
    worse = [task for task, gain in gains.items() if gain <= -_SAME]
    if not better and not worse:
        return "Against equal weights: no task differs."
    parts = []
    if better:
        parts.append(f"{len(better)} better (most: {max(better, key=gains.__getitem__)})")
    if worse:
        parts.append(f"{len(worse)} worse (most: {min(worse, key=gains.__getitem__)})")
    same = len(gains) - len(better) - len(worse)
    return f"Against equal weights: {', '.join(parts)}" + (f", {same} the same." if same else ".")
