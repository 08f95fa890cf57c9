"""The page as a whole."""

import json
import re

from asking import Asker
from browser import fits


def test_it_fits_wide_and_narrow_light_and_dark(window, served):
    view = window(served.url, width=390, scheme="dark")
    view.settled()
    for width, scheme, text in (
        (390, "dark", "#e9ecf2"),
        # It also changes with the system while it is open.
        (390, "light", "#1d2230"),
        (1440, "light", "#1d2230"),
        (1440, "dark", "#e9ecf2"),
    ):
        view.page.set_viewport_size({"width": width, "height": 900})
        view.page.emulate_media(color_scheme=scheme)
        view.page.wait_for_function(
            "(text) => [...document.querySelectorAll('#front, .panel')].every((one) =>"
            "one.querySelector('.js-plotly-plot').layout.font.color === text)",
            arg=text,
        )
        assert fits(view)
        ground = view.page.evaluate("getComputedStyle(document.body).backgroundColor")
        shade = sum(map(int, re.findall(r"\d+", ground)[:3]))
        assert (shade > 600) == (scheme == "light")


def test_words_that_outsiders_need_are_explained_where_they_stand(window, served):
    view = window(served.url)
    view.settled()
    assert "nothing on offer beats them" in view.page.text_content("#front-card")
    assert "Hypervolume measures a whole front" in view.page.text_content("#front-card")
    assert "how much each task matters to you" in view.page.text_content("#preference-card")
    unnamed = """() => [...document.querySelectorAll("input, button, summary")].filter((one) =>
        !(one.labels && one.labels.length) && !one.textContent.trim()
        && !one.getAttribute("aria-label")).map((one) => one.outerHTML)"""
    assert view.page.evaluate(unnamed) == []


def test_the_layout_names_no_other_machine(served):
    layout = Asker(served).get("_dash-layout").text
    assert "http" not in layout.replace("http://www.w3.org", "")
    json.loads(layout)
