"""An outcome survives its JSON."""

import json
from dataclasses import replace

import pytest

from lorpman import UsageError
from lorpman.lab.reproduce.markdown_table import as_markdown
from lorpman.lab.reproduce.outcome import outcome_from_json
from small_reproduction import SMALL


def _through_json(outcome):
    return json.loads(json.dumps(outcome.to_json()))


def test_json_gives_back_the_same_table_without_any_run_directory(made):
    written = _through_json(made[1])
    again = outcome_from_json(SMALL, written)
    assert as_markdown(again) == as_markdown(made[1])
    assert _through_json(again) == written


def test_means_come_from_the_runs_and_not_from_what_is_printed_beside_them(made):
    written = _through_json(made[1])
    written["rows"][0]["ours"]["hypervolume"]["mean"] = 9.0
    assert as_markdown(outcome_from_json(SMALL, written)) == as_markdown(made[1])


def test_what_another_registry_wrote_is_refused(made):
    written = _through_json(made[1])
    with pytest.raises(UsageError, match="other lines"):
        outcome_from_json(replace(SMALL, lines=SMALL.lines[:2]), written)
    del written["seeds"]
    with pytest.raises(UsageError, match="not what a reproduction writes"):
        outcome_from_json(SMALL, written)


def test_a_reduced_protocol_is_not_comparable_and_says_what_is_less(made):
    outcome = made[1]
    assert not outcome.comparable
    assert outcome.reduction.startswith("much smaller")
    assert "1 seed instead of 2" in replace(outcome, seeds=(0,)).reduction


def test_the_command_names_seeds_only_where_they_are_not_the_plans(made):
    outcome = made[1]
    assert outcome.command == "lorpman reproduce small-ablation --scale laptop"
    assert replace(outcome, seeds=(1,)).command.endswith(" --seeds 1")
    assert replace(outcome, generated=True).command.endswith(" --data DIR")
