"""Asking for scores."""

from dash import html

from lorpman.explorer.cards.demand_card import search_result


def test_a_demand_moves_the_preference_there_or_to_the_nearest(window, served):
    view = window(served.url)
    view.settled()
    bound = view.page.locator(".bound input").first
    for asked, said in ((0.2, "Found."), (0.999, "this is the nearest")):
        bound.fill(str(asked))
        view.page.locator("#find").click()
        view.page.wait_for_function(
            "said => document.getElementById('answer').textContent.includes(said)", arg=said
        )
        assert f"--at-least left={asked:g} --best right" in view.page.text_content("#answer")
    view.page.wait_for_function("location.search.split(/[=,&]/)[1] > 0.5")
    view.settled()
    assert "need=left:0.999" in view.page.evaluate("location.search")


def test_what_is_kept_and_what_is_not_is_told_apart(opened):
    bounds = {"left": 0.0, "right": 2.0}
    choice = opened.front.select(at_least=bounds, knee=True)
    head, rows, command = search_result(opened, None, bounds, choice)
    assert "Nothing reaches all of that" in head.children[0].children
    assert [row.children[0].className for row in rows.children] == ["right", "wrong"]
    assert "--at-least right=2" in command.children[0].children
    assert isinstance(command.children[1], html.Button)
