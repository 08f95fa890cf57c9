"""Moving and asking in a real browser: what is asked is answered, to whoever asked."""

import math
import threading

import pytest
import torch

from asking import Asker
from browser import SLIDER, here, move
from lorpman.lab.runs.directory import open_run


def test_moving_the_slider_evaluates_in_between_and_moves_the_point(window, served, digits):
    view = window(served.url)
    view.settled()
    axes = "document.querySelector('#front .js-plotly-plot')._fullLayout.xaxis.range"
    before = view.page.evaluate(axes)
    move(view, 0.335)
    assert view.page.evaluate(axes) == pytest.approx(before)
    assert view.alpha() == [0.665, 0.335]
    model, live = open_run(digits)[1], served.queries.live_runs["digits"]
    x, y = live.held[0]
    with torch.no_grad():
        outputs = model(x, torch.tensor([0.665, 0.335]))
    right = [(o.argmax(1) == t).float().mean().item() for o, t in zip(outputs, y, strict=True)]
    assert list(view.scores().values()) == pytest.approx(right, abs=1e-4)
    assert here(view) == pytest.approx(right, abs=1e-4)
    assert "held-out test samples" in view.page.text_content("#status")
    # By keys alone: the slider is reached with Tab and moved with the arrows.
    view.page.locator("#find").focus()
    view.page.locator(SLIDER).focus()
    assert view.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    view.page.keyboard.press("ArrowRight")
    view.arrived(0.66)
    assert view.alpha() == [0.66, 0.34]


def test_two_windows_share_nothing_and_a_link_gives_the_same_view(window, served):
    first, second = window(served.url), window(served.url)
    first.settled()
    second.settled()
    for a, b in ((0.1, 0.9), (0.25, 0.75)):
        move(first, a)
        move(second, b)
    assert first.alpha() == [0.75, 0.25]
    assert second.alpha() == [0.25, 0.75]
    assert first.scores() != second.scores()
    again = window(first.page.text_content("#link"))
    again.settled()
    assert again.scores() == first.scores()


def test_a_bad_address_is_named_and_left_out(window, served):
    view = window(served.url + "?run=../x&alpha=<img src=x onerror=a()>&need=left:much&hide=%00")
    view.settled()
    assert "cannot be read (run and alpha and need)" in view.page.text_content("#notice")
    assert view.alpha() == [0.5, 0.5]


def test_a_slow_answer_has_a_spinner_and_a_silent_server_is_named(window, served, monkeypatch):
    live, gate = served.queries.live_runs["digits"], threading.Event()
    quick = live.point
    view = window(served.url)
    view.settled()
    spinner = view.page.locator(".spinner")
    assert not spinner.is_visible()
    monkeypatch.setattr(live, "point", lambda alpha: gate.wait(60) and quick(alpha))
    # The page waits for 15 seconds before it says something; a test need not.
    view.page.evaluate(
        """() => {
            const plain = window.setTimeout;
            window.setTimeout = (work, after, ...more) =>
                plain(work, after === 15000 ? 1500 : after, ...more);
        }"""
    )
    try:
        view.page.locator(SLIDER).fill("0.455")
        spinner.wait_for(state="visible")
        assert view.page.get_attribute("#preference-card", "aria-busy") == "true"
        view.page.locator("#notice", has_text="No answer yet").wait_for(state="visible")
    finally:
        gate.set()
    spinner.wait_for(state="hidden")
    view.arrived(0.455, 1)
    view.page.locator("#notice").wait_for(state="hidden")


def test_an_answer_says_which_question_it_answers(served):
    asker = Asker(served)
    for serial, said in ((7, 7), ("7", 0), (None, 0), (True, 0)):
        asked = {"run": "digits", "alpha": [0.5, 0.5], "serial": serial}
        now = asker.post(asker.body(asked)).json["response"]["now"]["data"]
        assert (now["run"], now["alpha"], now["serial"]) == ("digits", [0.5, 0.5], said)


def test_scores_that_are_not_finite_are_no_answer(served):
    live = served.queries.live_runs["digits"]
    heads = [p for n, p in live.model.network.named_parameters() if n.startswith("heads.1")]
    before = [p.detach().clone() for p in heads]
    asker = Asker(served)
    with torch.no_grad():
        for p in heads:
            p.fill_(math.inf)
        try:
            answer = asker.post(asker.body({"run": "digits", "alpha": [0.1234, 0.8766]}))
        finally:
            for p, value in zip(heads, before, strict=True):
                p.copy_(value)
    assert answer.status_code == 409
    assert "at preference (0.123, 0.877) is not finite: parameter 'heads.1" in answer.text


@pytest.mark.parametrize("clicks", [True, "1", 1.5, [1], {}])
def test_a_search_comes_with_a_count_of_clicks(served, clicks):
    asker = Asker(served)
    body = asker.search_body("digits", [0.1, None])
    body["inputs"][0]["value"] = clicks
    answer = asker.post(body)
    assert (answer.status_code, answer.text) == (400, "a count of clicks is a whole number")
