"""The parts of cards."""

from lorpman.explorer.cards.card_frame import card, command_with_copy, label_for


def test_a_card_is_named_by_its_title():
    made = card("Title", "content", name="thing", why="because")
    assert made.id == "thing-card"
    assert getattr(made, "aria-labelledby") == made.children[0].id == "thing-title"
    assert made.children[1].children == "because"
    assert made.children[-1] == "content"


def test_a_label_points_at_the_id_that_dash_writes():
    assert label_for({"type": "bound", "index": 3}, "left").htmlFor == '{"index":3,"type":"bound"}'


def test_the_copy_button_names_what_it_copies():
    line, button = command_with_copy("command", "lorpman").children
    assert (line.id, line.children) == ("command", "lorpman")
    assert getattr(button, "data-copy") == "command"
