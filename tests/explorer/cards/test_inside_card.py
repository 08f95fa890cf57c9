"""Training and layers of every run."""

from dataclasses import replace

from dash import dcc

from lorpman.explorer.cards.inside_card import inside_card


def graphs(card):
    return [part.id["index"] for part in card._traverse() if isinstance(part, dcc.Graph)]


def test_every_run_has_its_figures_under_its_own_key(opened):
    names = graphs(inside_card([opened, replace(opened, key="twin")]))
    own = ["losses", "volume", "correlation", "energy"]
    expected = ["-parameters", *(f"{key}-{name}" for key in ("digits", "twin") for name in own)]
    assert names == expected


def test_missing_weights_are_told(opened):
    card = inside_card([replace(opened, model=None, why_not_live="gone")])
    texts = [part.children for part in card._traverse() if hasattr(part, "children")]
    assert "Its layers cannot be shown: gone." in texts
    assert graphs(card) == ["-parameters", "digits-losses", "digits-volume"]
