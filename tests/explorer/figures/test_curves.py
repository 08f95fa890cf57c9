"""Two tasks."""

from lorpman.explorer.figures.curves import draw_curves, live_curve


def test_lines_run_from_left_to_right_and_points_keep_their_places(opened):
    for trace in draw_curves([opened])["data"]:
        assert trace["x"] == sorted(trace["x"])
        for x, y, (_, place), paint in zip(
            trace["x"], trace["y"], trace["customdata"], trace["marker"]["color"], strict=True
        ):
            assert [x, y] == opened.front.scores[place].tolist()
            assert paint == opened.front.alphas[place, 0].item()


def test_several_runs_have_a_colour_each(opened):
    traces = draw_curves([opened, opened])["data"]
    assert [trace["marker"]["color"] for trace in traces] == ["#0072B2"] * 2 + ["#D55E00"] * 2
    assert len({trace["marker"]["symbol"] for trace in traces}) == 2


def test_the_live_line_follows_the_preference(opened):
    trace = live_curve(opened, opened.front)
    order = opened.front.alphas[:, 0].argsort()
    assert trace["x"] == opened.front.scores[order, 0].tolist()
    assert trace["y"] == opened.front.scores[order, 1].tolist()
    assert trace["meta"]["run"] == opened.key
