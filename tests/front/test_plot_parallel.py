import pytest
import torch
from matplotlib.figure import Figure

from front.fronts import spread_front
from lorpman.front.front import Front
from lorpman.front.plot_parallel import draw_parallel, parallel_size


def _small() -> Front:
    scores = torch.tensor([[0.2, 3.0, 1.0, 7.0], [0.6, 1.0, 1.0, 8.0], [0.4, 2.0, 1.0, 9.0]])
    alphas = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.2, 0.5, 0.2, 0.1]])
    names, up = ("a", "b", "c", "d"), (True, False, True, True)
    return Front(alphas, scores, names, up, (0.0, 4.0, 0.0, 0.0))


def _axes(fronts: list[Front]):  # type: ignore[no-untyped-def]
    figure = Figure()
    draw_parallel(figure, fronts)
    return figure.axes[0]


def test_axes_run_from_the_worst_score_to_the_best() -> None:
    """Task b is better when lower, and task c is the same everywhere: in the middle."""
    lines = [line for line in _axes([_small()]).lines if len(line.get_ydata()) == 4]
    heights = {tuple(round(float(y), 6) for y in line.get_ydata()) for line in lines}
    assert heights == {(0.0, 0.0, 0.5, 0.0), (1.0, 1.0, 0.5, 0.5), (0.5, 0.5, 0.5, 1.0)}


def test_a_dot_marks_the_task_with_the_largest_weight() -> None:
    dots = [line for line in _axes([_small()]).lines if len(line.get_ydata()) == 1]
    # The most decided preference is drawn last.
    assert [int(dot.get_xdata()[0]) for dot in dots] == [3, 1, 0]


def test_names_say_where_lower_is_better_and_ends_are_written() -> None:
    axes = _axes([_small()])
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["a", "b\n(lower is better)", "c", "d"]
    assert [text.get_text() for text in axes.texts][:4] == ["0.200", "0.600", "3.00", "1.00"]


def test_several_fronts_are_a_median_in_a_band() -> None:
    axes = _axes([_small(), spread_like(_small())])
    medians = [line for line in axes.lines if line.get_label().startswith("front")]
    assert [line.get_label().split("  ")[0] for line in medians] == ["front 1", "front 2"]
    assert medians[0].get_ydata()[0] == pytest.approx(0.5)
    assert len(axes.collections) == 3


def spread_like(front: Front) -> Front:
    """The same front once more: it changes no worst and no best score."""
    return Front(front.alphas, front.scores, front.tasks, front.maximise, front.reference)


@pytest.mark.parametrize(
    ("m", "width", "height"), [(5, 7.0, 5.0), (6, 7.0, 5.0), (20, 9.2, 5.49), (60, 18.0, 5.49)]
)
def test_many_tasks_need_room(m: int, width: float, height: float) -> None:
    found = parallel_size(spread_front(2, m))
    assert found == (pytest.approx(width), pytest.approx(height))
