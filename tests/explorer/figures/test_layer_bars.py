"""Layers as bars and shades."""

import plotly.graph_objects as go

from lorpman.explorer.figures.layer_bars import draw_correlations, draw_energies, layer_names
from lorpman.explorer.learned_layers import LayerDeltas

TWO = [LayerDeltas("bottom.0.weight", [[1, 0.2], [0.2, 1]], [0.3, 0.4])]


def test_pairs_of_few_tasks_have_bars():
    (bars,) = draw_correlations(TWO, ["left", "right"])["data"]
    assert (bars["name"], bars["y"]) == ("left and right", [0.2])
    assert [trace["y"] for trace in draw_energies(TWO, ["left", "right"])["data"]] == [[0.3], [0.4]]


def test_signs_do_not_cancel_over_the_pairs_of_many_tasks():
    half = [[1 if i == j else 0.5 * (-1) ** (i + j) for j in range(4)] for i in range(4)]
    layers = [LayerDeltas("a.weight", half, [1, 2, 3, 4])]
    figure = draw_correlations(layers, list("abcd"))
    assert figure["data"][0]["y"] == [0.5]
    assert figure["layout"]["yaxis"]["range"] == [0, 1]
    shades = draw_energies(layers, list("abcd"))
    assert shades["data"][0]["z"] == [[1], [2], [3], [4]]
    go.Figure(shades)


def test_one_layer_keeps_its_name():
    assert layer_names(TWO) == ["bottom.0"]
