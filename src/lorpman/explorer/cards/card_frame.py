"""What every card is made of."""

import json
from typing import Any

from dash import html


def extra(kind: str = "data", **values: str) -> Any:
    """Attributes of an element that Dash has no names for: ``data-run``, ``aria-hidden``.

    Args:
        kind: What stands before the hyphen.
        values: What stands behind it, with its value.

    >>> extra(run="digits")
    {'data-run': 'digits'}
    """
    return {f"{kind}-{name}": value for name, value in values.items()}


def card(title: str, *children: Any, name: str, why: str = "") -> Any:
    """A card of the page.

    Args:
        title: Its heading.
        children: What stands on it, from above.
        name: Part of its id, and its class.
        why: A sentence below the heading.
    """
    head: list[Any] = [html.H2(title, id=f"{name}-title")]
    if why:
        head.append(html.P(why, className="why"))
    return html.Section(
        [*head, *children],
        id=f"{name}-card",
        className=f"card {name}",
        **extra("aria", labelledby=f"{name}-title"),
    )


def label_for(component_id: dict[str, Any], text: str, kind: str = "unseen") -> Any:
    """The label of an input.

    Args:
        component_id: What Dash calls the input.
        text: The words of the label.
        kind: Its class; ``unseen`` is for screen readers alone.
    """
    # Dash writes such an id into the page as compact, sorted JSON.
    identity = json.dumps(component_id, sort_keys=True, separators=(",", ":"))
    return html.Label(text, htmlFor=identity, className=kind, title=text)


def command_with_copy(element_id: str, text: str | None = None) -> Any:
    """A line of code, and a button that copies it.

    Args:
        element_id: The id of the line.
        text: The line; None where something else fills it.
    """
    line = html.Code(id=element_id) if text is None else html.Code(text, id=element_id)
    button = html.Button("copy", className="small", **extra(copy=element_id))
    return html.Div([line, button], className="command")
