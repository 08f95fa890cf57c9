"""What page and report say about retraining."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from lorpman.explorer.control_words import explain_control
from lorpman.explorer.opened_run import open_runs
from lorpman.explorer.report import report_html
from lorpman.front.control import NO_TRADE_OFF
from lorpman.lab.beside_retraining import CONTROL_FRONT, control_of_run
from run_copies import with_scores


def test_a_run_alone_says_nothing(digits, tmp_path):
    assert explain_control(open_runs([digits], tmp_path)) == []


def test_beside_retrained_networks_the_numbers_are_told(digits, retrained, tmp_path):
    runs = open_runs([digits, retrained], tmp_path)
    (said,) = explain_control(runs)
    control = control_of_run(runs[0].spec, shutil.copytree(digits, tmp_path / "copy"),
                             runs[1].front, tmp_path)  # fmt: skip
    assert said.startswith("lorpman, seed 0: Beside 3 networks")
    assert f"{abs(control.regret):.1%} {'lower' if control.regret < 0 else 'higher'}" in said
    assert f"{abs(control.reach):.4f} {'worse' if control.reach < 0 else 'better'}" in said
    assert f"{control.order_on_losses.correlation:.2f}" in said


def test_without_weights_what_was_kept_is_told(digits, retrained, tmp_path):
    run = shutil.copytree(digits, tmp_path / "digits")
    both = open_runs([run, retrained], tmp_path)
    live = explain_control(both)
    control_of_run(both[0].spec, run, both[1].front, tmp_path)
    (run / "checkpoint.safetensors").unlink()
    assert explain_control(open_runs([run, retrained], tmp_path)) == live
    # The report knows the run alone, and finds the numbers in its front.
    (alone,) = open_runs([run], None)
    (said,) = explain_control([alone])
    assert live[0].endswith(said)
    assert said in report_html(alone).replace("&#x27;", "'")
    (run / CONTROL_FRONT).unlink()
    assert explain_control(open_runs([run, retrained], None)) == []


def test_tasks_that_do_not_compete_are_named_so(digits, retrained, tmp_path):
    level = with_scores(retrained, tmp_path / "level", torch.full((3, 2), 0.5))
    runs = open_runs([digits, level], tmp_path)
    flat = replace(runs[1], front=replace(runs[1].front, losses=torch.ones(3, 2)))
    assert NO_TRADE_OFF in explain_control([runs[0], flat])
    assert NO_TRADE_OFF not in explain_control([runs[0], open_runs([retrained], tmp_path)[0]])


@pytest.mark.parametrize(
    "kept",
    [None, 7, [], {"regret": "high"}, {"regret": True, "order_on_losses": 3}],
)
def test_nonsense_in_the_file_is_not_told(digits, tmp_path, kept):
    run = shutil.copytree(digits, tmp_path / "digits")
    front = json.loads((run / "front.json").read_text())
    (run / "front.json").write_text(json.dumps({**front, "control": kept}))
    for said in explain_control(open_runs([run], None)):
        assert "high" not in said
