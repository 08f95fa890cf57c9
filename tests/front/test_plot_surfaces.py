import numpy as np
from matplotlib.figure import Figure

from front.fronts import spread_front
from lorpman.front.plot_surfaces import draw_surfaces, triangles


def test_neighbours_span_triangles() -> None:
    assert sorted(triangles(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).tolist()[0]) == [
        0,
        1,
        2,
    ]
    assert triangles(np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])).shape == (0, 3)
    assert triangles(np.zeros((1, 2))).shape == (0, 3)


def test_a_surface_is_shown_with_its_three_planes() -> None:
    figure = Figure()
    draw_surfaces(figure, [spread_front(9, 3)])
    space, *planes = figure.axes[:4]
    assert [space.get_xlabel(), space.get_ylabel(), space.get_zlabel()] == [
        "task 0",
        "task 1",
        "task 2",
    ]
    labels = [(axes.get_xlabel()[:6], axes.get_ylabel()[:6]) for axes in planes]
    assert labels == [("task 0", "task 1"), ("task 0", "task 2"), ("task 1", "task 2")]
    assert figure.axes[4].get_ylabel() == "preference for task 0"


def test_several_surfaces_share_a_legend() -> None:
    figure = Figure()
    draw_surfaces(figure, [spread_front(9, 3, name) for name in ("one", "two")])
    (legend,) = figure.legends
    assert [text.get_text().split()[0] for text in legend.get_texts()] == ["one", "two"]
