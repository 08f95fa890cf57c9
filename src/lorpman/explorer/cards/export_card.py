"""The card from which the chosen network is taken away."""

import shlex
from collections.abc import Sequence
from typing import Any

from dash import html

from lorpman.explorer import sentences
from lorpman.explorer.cards.card_frame import card, command_with_copy, extra
from lorpman.explorer.opened_run import OpenedRun
from lorpman.explorer.queries import FORMATS
from lorpman.lab.problems.own_problem import as_people_write
from lorpman.lab.problems.registry import problem_names


def export_card() -> Any:
    """A button per file format, the command that does the same, and a link to this view."""
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
        html.P("The same without this page:", className="label"),
        command_with_copy("command"),
        html.P("This view as a link:", className="label"),
        command_with_copy("link"),
        name="take",
        why="A file that runs without lorpman, zipped with a card that says what it is: settings, "
        "preference, scores, checksum.",
    )


def export_command(run: OpenedRun, alpha: Sequence[float]) -> str:
    """How to export the same network in a terminal, or in Python where no command can name it.

    Args:
        run: The run.
        alpha: The preference ``[m]``.
    """
    problem = None if run.spec is None else run.spec.problem
    built_in = problem is not None and problem.name in problem_names()
    # A model, or a run of a notebook's problem, which no command can name.
    if run.path is None or problem is None or not (built_in or problem.reference):
        return f'lp.export(model, [{sentences.alpha_text(alpha)}], "model.onnx", example=x)'
    parts = ["lorpman", "export", str(run.path), "--alpha", sentences.alpha_text(alpha)]
    parts += [] if built_in else ["--problem", as_people_write(problem)]
    return shlex.join([*parts, "--to", "model.onnx"])
