import base64

import lorpman as lp
from lorpman.front.notebook import front_html, html_table


def _front(n):
    return lp.Front(
        alphas=lp.grid(2, n),
        scores=lp.grid(2, n) * 0.5 + 0.25,
        tasks=("a<b", "c"),
        maximise=(True, True),
        reference=(0.0, 0.0),
        label="mine",
    )


def test_a_front_shows_its_volume_its_scores_and_its_picture():
    front = _front(5)
    shown = front._repr_html_()
    assert shown == front_html(front)
    assert shown.count("<tr>") == 1 + 5
    assert f"{float(front.hypervolume()):.3f}" in shown
    png = base64.b64decode(shown.partition("base64,")[2].partition('"')[0])
    assert png.startswith(b"\x89PNG")


def test_names_cannot_break_out_of_the_table():
    assert "a<b" not in front_html(_front(3))
    assert "<script>" not in html_table(["<script>"], [["<script>"]])


def test_a_large_front_is_shown_in_part():
    shown = front_html(_front(50))
    assert shown.count("<tr>") == 1 + 10
    assert "10 of 50 points" in shown
