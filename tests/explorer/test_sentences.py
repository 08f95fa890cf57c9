"""Sentences for readers from outside the field."""

from dataclasses import replace

from lorpman.explorer import sentences
from lorpman.explorer.opened_run import open_runs


def test_an_error_is_explained_where_one_is_shown():
    plain = sentences.explain_hypervolume(["hypervolume 0.9"])
    explained = sentences.explain_hypervolume(["hypervolume 0.9", "hypervolume 0.8 ± 0.01"])
    assert "standard error" not in plain
    assert explained.startswith(plain)
    assert "standard error" in explained


def test_what_can_be_chosen_depends_on_the_method(rivals, opened, tmp_path):
    runs = open_runs([rivals["pmtl"], rivals["ls"], rivals["pamal"]], tmp_path)
    discrete, single, continuous = map(sentences.explain_choice, runs)
    assert "separate networks" in discrete
    assert "nothing to move" in single
    assert "any of them" in continuous
    still = sentences.explain_choice(replace(opened, model=None, why_not_live="no weights"))
    assert "stored points" in still
    assert still.endswith("evaluated live here: no weights.")


def test_references_are_said_once_where_they_agree(opened):
    assert sentences.reference_text(opened.front) == "0 for every task"
    other = replace(opened.front, reference=(0.0, 0.5))
    assert sentences.reference_text(other) == "left 0, right 0.5"
