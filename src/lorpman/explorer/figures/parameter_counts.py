"""How many numbers there are to store."""

from collections.abc import Sequence

from lorpman.explorer.figures.style import GREY, Figure, basic_layout, colour


def draw_parameter_counts(counts: Sequence[tuple[str, int]]) -> Figure:
    """One bar for every way of getting there.

    Args:
        counts: Names with numbers of parameters. The first and the last are yardsticks, in grey;
            runs, in their colours, stand between.
    """
    names, values = [name for name, _ in counts], [value for _, value in counts]
    # The first and the last bar are no runs, but what these are compared with.
    colours = [GREY, *(colour(place) for place in range(len(names) - 2)), GREY]
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": values,
        "text": [f"{value:,}" for value in values],
        "textposition": "auto",
        "marker": {"color": colours},
        "hovertemplate": "%{y}: %{x:,}<extra></extra>",
    }
    layout = basic_layout(
        xaxis={"title": {"text": "parameters"}, "zeroline": False},
        yaxis={"automargin": True, "autorange": "reversed"},
        margin={"l": 20, "r": 16, "t": 10, "b": 46},
        bargap=0.4,
    )
    return {"data": [bars], "layout": layout}
