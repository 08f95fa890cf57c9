"""The picture of the fronts: clicked, hidden, and beside one another."""

import pytest

from asking import serving
from browser import click_point
from lorpman.front.front import Front


def test_a_click_on_the_front_and_a_row_of_the_table_set_the_preference(window, served, digits):
    front = Front.load(digits / "front.json")
    view = window(served.url)
    view.settled()
    for place in (2, 8):
        wanted = f"alpha={front.alphas[place, 0]:.1f},{front.alphas[place, 1]:.1f}"
        click_point(view, "digits", place, wanted)
    view.page.locator("summary", has_text="as a table").click()
    view.page.locator("button", has_text="move here").first.click()
    view.page.wait_for_function("location.search.includes('alpha=0,1')")
    view.settled()
    assert view.alpha() == [0.0, 1.0]


def test_runs_lie_over_one_another_and_each_kind_moves_in_its_way(window, digits, rivals):
    with serving([digits, *rivals.values()]) as explorer:
        view = window(explorer.url)
        view.settled()
        drawn = """() => [...new Set(document.querySelector("#front .js-plotly-plot").data
                        .map((trace) => trace.meta.run).filter(Boolean))]"""
        assert view.page.evaluate(drawn) == ["digits", *rivals]
        view.page.locator("#shown label", has_text="pamal").click()
        view.page.wait_for_function("location.search.includes('hide=pamal')")
        view.page.wait_for_function(f"!({drawn})().includes('pamal')")
        view.page.locator("#run label", has_text="pmtl").click()
        view.page.wait_for_selector("#places:not(.absent)")
        assert "separate networks" in view.page.text_content("#moving")
        assert not view.page.locator("#weights").is_visible()
        view.page.locator("#place").fill("1")
        alphas = Front.load(rivals["pmtl"] / "front.json").alphas
        view.arrived(alphas[1, 0].item())
        assert view.alpha() == pytest.approx(alphas[1].tolist(), abs=1e-3)
        view.page.locator("#run label", has_text="ls,").click()
        view.page.wait_for_function(
            "document.getElementById('moving').textContent.includes('one network')"
        )
        assert not view.page.locator("#place").is_visible()
