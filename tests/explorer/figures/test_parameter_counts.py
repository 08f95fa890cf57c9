"""What there is to store."""

import plotly.graph_objects as go

from lorpman.explorer.figures.parameter_counts import draw_parameter_counts


def test_yardsticks_are_grey_and_runs_have_their_colours():
    figure = draw_parameter_counts([("one", 1), ("run", 20_000), ("other", 3), ("all", 4)])
    go.Figure(figure)
    (bars,) = figure["data"]
    first, *runs, last = bars["marker"]["color"]
    assert first == last
    assert runs == ["#0072B2", "#D55E00"]
    assert bars["text"][1] == "20,000"
