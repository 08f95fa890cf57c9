"""Real inputs beside the preference."""

from dataclasses import replace

from lorpman.explorer.cards.samples_card import no_samples, sample_figures


def test_the_samples_show_predictions_and_frame_what_flips(window, served):
    live = served.queries.live_runs["digits"]
    view = window(served.url + "?alpha=1,0")
    view.settled()
    point = live.point((1.0, 0.0))
    flips = [
        any(new.flipped(old) for new, old in zip(now, balanced, strict=True))
        for now, balanced in zip(point.predictions, live.samples.balanced, strict=True)
    ]
    assert any(flips)
    cards = view.page.locator("figure").all()
    assert [card.get_attribute("class") == "flip" for card in cards] == flips
    shown = [card.locator("b").first.text_content() for card in cards]
    assert shown == [now[0].text for now in point.predictions]
    assert view.page.evaluate("document.querySelector('figure img').naturalWidth") > 8


def test_nothing_is_framed_where_nothing_flips(served):
    live = served.queries.live_runs["digits"]
    cards = sample_figures(live.run, live, live.samples.balanced)
    assert [card.className for card in cards] == [""] * len(cards)


def test_a_run_without_data_says_why(opened):
    assert "no weights" in no_samples(replace(opened, why_not_live="no weights")).children
