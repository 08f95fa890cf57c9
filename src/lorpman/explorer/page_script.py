"""What the browser does by itself, without asking this process.

Every function here ties one function of ``assets/explorer.js`` to the parts of the page that it
reads (inputs, whose change calls it, then states) and writes (outputs), in the order of its
arguments and results.
"""

from dash import ALL, ClientsideFunction, Dash, Input, Output, State

_WEIGHTS = {"type": "weight", "index": ALL}
_BOUNDS = {"type": "bound", "index": ALL}
_INSIDE = {"type": "inside", "index": ALL}


def register_page_script(app: Dash) -> None:
    """Tie the page to the functions of its script.

    Args:
        app: The Dash application.
    """
    _register_prefer(app)
    _register_follow(app)
    _register_draw(app)
    _register_dress(app)


def _register_prefer(app: Dash) -> None:
    """Whatever was moved, clicked or found becomes the preference, and all controls show it."""
    app.clientside_callback(
        ClientsideFunction("lorpman", "prefer"),
        Output("preference", "data"),
        Output(_WEIGHTS, "value"),
        Output("place", "value"),
        Output("run", "value"),
        # Emptied, so that a second click on the same point is a change again.
        Output("front", "clickData"),
        Output("flat", "clickData"),
        Input(_WEIGHTS, "value"),
        Input("place", "value"),
        Input("run", "value"),
        Input("front", "clickData"),
        Input("flat", "clickData"),
        Input("picked", "data"),
        Input("found", "data"),
        State("runs", "data"),
        State("preference", "data"),
    )


def _register_follow(app: Dash) -> None:
    """A new preference is asked for, and written into the address and the link."""
    app.clientside_callback(
        ClientsideFunction("lorpman", "follow"),
        Output("address", "data"),
        Output("link", "children"),
        Output("moving", "children"),
        Output("where", "children"),
        Input("preference", "data"),
        Input("now", "data"),
        Input("shown", "value"),
        Input(_BOUNDS, "value"),
        State("runs", "data"),
        State("ends", "data"),
    )


def _register_draw(app: Dash) -> None:
    """The fronts are drawn with the moving point on them, in the colours of the page."""
    app.clientside_callback(
        ClientsideFunction("lorpman", "draw"),
        Output("front", "figure"),
        Output("flat", "figure"),
        Input("drawn", "data"),
        Input("drawn-flat", "data"),
        Input("now", "data"),
        Input("shown", "value"),
        Input("curves", "data"),
        Input("brush", "data"),
        Input("look", "data"),
        State("ends", "data"),
    )


def _register_dress(app: Dash) -> None:
    """All other figures get the colours of the page, light or dark."""
    app.clientside_callback(
        ClientsideFunction("lorpman", "dress"),
        Output(_INSIDE, "figure"),
        Input("look", "data"),
        State(_INSIDE, "figure"),
    )
